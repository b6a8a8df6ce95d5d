export * from './index.js';
export { init as default } from './index.js';
