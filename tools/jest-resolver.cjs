// First-party imports name the compiled file ('./x.js'). Under Jest, they resolve to the source ('./x.ts').
module.exports = (request, options) => {
  if (/^\.{1,2}\/.*\.js$/.test(request) && !options.basedir.includes('/node_modules/')) {
    try {
      return options.defaultResolver(`${request.slice(0, -3)}.ts`, options);
    } catch {
      // a real .js file: resolved below
    }
  }
  return options.defaultResolver(request, options);
};
