# Modules for the web servers of Debian, linked with libdthrottle.

MODULES := target/modules
MODULE_WARNINGS := -O2 -g -Wall -Wextra -Werror -Wunused-parameter
APACHE_MODULES := /usr/lib/apache2/modules
NGINX_SOURCE := /usr/share/nginx/src
NGINX_CONFIGURE = . ./conf_flags && PKG_CONFIG_PATH="$(CURDIR)/$(MODULES)/lib/pkgconfig" \
	./configure "$${NGX_CONF_FLAGS[@]}" --with-cc-opt="$(MODULE_WARNINGS) -fPIC" \
	--with-ld-opt=-fPIC --builddir="$(CURDIR)/$(MODULES)/nginx" \
	--add-dynamic-module="$(CURDIR)/modules/nginx"

# The library that the modules are linked with. At run time the system's loader finds it.
$(MODULES)/lib/libdthrottle.so: build-c
	@$(MAKE) --no-print-directory --quiet install PREFIX="$(CURDIR)/$(MODULES)"

build-nginx: $(MODULES)/lib/libdthrottle.so ## Build the nginx module: target/modules/nginx/ngx_http_dthrottle_module.so
	@$(NEED) gcc pkg-config bash nginx $(NGINX_SOURCE)/configure=nginx-dev
	@mkdir -p $(MODULES)/nginx
	@cd $(NGINX_SOURCE) && bash -c '$(NGINX_CONFIGURE)' >"$(CURDIR)/$(MODULES)/nginx.log" 2>&1 || \
		{ tail -20 "$(CURDIR)/$(MODULES)/nginx.log"; exit 1; }
	$(MAKE) --no-print-directory --quiet -C $(NGINX_SOURCE) -f "$(CURDIR)/$(MODULES)/nginx/Makefile" modules

# apxs writes its files beside the sources, so it works on a copy.
build-apache: $(MODULES)/lib/libdthrottle.so ## Build the Apache module: target/modules/apache/.libs/mod_dthrottle.so
	@$(NEED) gcc pkg-config apache2 apxs=apache2-dev
	@mkdir -p $(MODULES)/apache && cp modules/apache/*.[ch] $(MODULES)/apache
	cd $(MODULES)/apache && apxs -c -S CC="gcc $(MODULE_WARNINGS)" \
		$$(PKG_CONFIG_PATH="$(CURDIR)/$(MODULES)/lib/pkgconfig" pkg-config --cflags --libs dthrottle) \
		mod_dthrottle.c dir_conf.c server.c domain.c child.c delayed.c request.c publish.c >../apache.log 2>&1 || \
		{ grep -A5 -i error ../apache.log; exit 1; }

bench-servers: build-nginx build-apache ## Compare the modules with limit_req and the bare servers; writes bench/out/servers.json
	@$(NEED) valgrind wrk $(APACHE_MODULES)/mod_qos.so=libapache2-mod-qos \
		$(APACHE_MODULES)/mod_evasive20.so=libapache2-mod-evasive
	$(PYTHON) bench/servers/main.py
	$(call KEEP,servers,make bench-servers,bench/out/servers.json)

.PHONY: build-nginx build-apache bench-servers
