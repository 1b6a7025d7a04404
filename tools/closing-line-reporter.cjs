const { writeSync } = require('node:fs');

/**
 * Ends the output with the line that CI reads: 'N passed, N failed'. A suite that does not load counts as failed; what
 * was skipped is named.
 */
module.exports = class ClosingLineReporter {
  onRunComplete(_contexts, results) {
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.testResults.flatMap((suite) =>
      suite.testResults
        .filter(({ status }) => status === 'pending' || status === 'todo')
        .map(({ fullName }) => `skipped: ${fullName}\n`),
    );
    // Jest's own summary comes after every reporter; and when it forces the exit, its streams say nothing more.
    process.once('exit', () =>
      writeSync(2, `\n${skipped.join('')}${results.numPassedTests} passed, ${failed} failed\n`),
    );
  }
};
