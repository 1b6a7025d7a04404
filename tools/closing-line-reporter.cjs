const { writeSync } = require('node:fs');

/** Ends the output with the line that CI reads: 'N passed, N failed'. A suite that does not load counts as failed. */
module.exports = class ClosingLineReporter {
  onRunComplete(_contexts, results) {
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.numPendingTests > 0 ? `, ${results.numPendingTests} skipped` : '';
    // Jest's own summary comes after every reporter; and when it forces the exit, its streams say nothing more.
    process.once('exit', () => writeSync(2, `\n${results.numPassedTests} passed, ${failed} failed${skipped}\n`));
  }
};
