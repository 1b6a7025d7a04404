const { TestEnvironment } = require('jest-environment-node');

/** One failed test has killed the mutant: the rest of its file is skipped. */
module.exports = class extends TestEnvironment {
  #failed = false;

  handleTestEvent(event) {
    if (event.name === 'test_fn_failure' || event.name === 'hook_failure') this.#failed = true;
    if (event.name === 'test_start' && this.#failed) event.test.mode = 'skip';
  }
};
