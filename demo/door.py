"""The questions of the demonstration, asked in Python."""

from dthrottle import ManualClock, Throttle

clock = ManualClock()
throttle = Throttle("5/s", burst=8, clock=clock)
answers = ""
for _second in range(3):
    answers += "".join("+" if throttle.allow("alice") else "-" for _ in range(10)) + " "
    clock.advance(1)
print(answers + str(throttle.check("alice").remaining))
