// Rules for all JavaScript of this checkout.
'use strict';

const js = require('@eslint/js');
const globals = require('globals');

module.exports = [
  { ignores: ['**/node_modules/', '**/pkg/', '.venv/', 'target/'] },
  js.configs.recommended,
  {
    files: ['**/*.js', '**/*.mjs', '**/*.cjs'],
    languageOptions: { ecmaVersion: 2023, globals: globals.node },
    linterOptions: { reportUnusedDisableDirectives: 'error' },
    rules: {
      curly: ['error', 'multi-line'],
      eqeqeq: 'error',
      'no-implicit-coercion': 'error',
      'no-shadow': 'error',
      'no-throw-literal': 'error',
      'no-var': 'error',
      'object-shorthand': 'error',
      'prefer-const': 'error',
      'prefer-object-has-own': 'error',
      'prefer-template': 'error',
      strict: ['error', 'safe'],
    },
  },
  { files: ['**/*.js'], languageOptions: { sourceType: 'commonjs' } },
  {
    // Runs on the web too: no globals that only Node has.
    files: ['bindings-node/api/**', 'bindings-wasm/js/{adapt,link,web}.js'],
    languageOptions: { globals: { ...globals['shared-node-browser'] } },
  },
  { files: ['bindings-wasm/js/web.js', '**/*.mjs'], languageOptions: { sourceType: 'module' } },
];
