// For dependency-cruiser, which reads it as a webpack config: resolves '#libs/x' to the source of the library instead
// of its build.
const { join } = require('node:path');
module.exports = {
  resolve: {
    alias: {
      '#libs/*/lean': join(process.cwd(), 'libs/*/src/lean.ts'),
      '#libs/*': join(process.cwd(), 'libs/*/src/index.ts'),
    },
  },
};
