const { writeSync } = require('node:fs');

/**
 * Ends the output with the line that CI reads: 'N passed, N failed'. A suite that does not load counts as failed.
 * Skipped tests are listed.
 */
module.exports = class ClosingLineReporter {
  onRunComplete(_contexts, results) {
    const failed = results.numFailedTests + results.numRuntimeErrorTestSuites;
    const skipped = results.testResults.flatMap((suite) =>
      suite.testResults
        .filter(({ status }) => status === 'pending' || status === 'todo')
        .map(({ fullName }) => `skipped: ${fullName}\n`),
    );
    // Jest prints its own summary after every reporter, and its streams print nothing more when it forces the exit.
    process.once('exit', () =>
      writeSync(2, `\n${skipped.join('')}${results.numPassedTests} passed, ${failed} failed\n`),
    );
  }
};
