// A property that fails has killed the mutant: its smallest counterexample does not matter. Few lives, for each mutant pays for them.
const fc = require('fast-check');
fc.configureGlobal({ ...fc.readConfigureGlobal(), endOnFailure: true });
process.env.LIVES ??= '6';
