// Jest's order, except that tests run last if their programs take minutes to build on a new machine.
const { readFileSync } = require('node:fs');
const Sequencer = require('@jest/test-sequencer').default;

const needsMuch = ({ path }) =>
  /describeOnKube|describeOnFlux|KubeCluster|findHelm|'helm'|'vm'|'vm-long'|vm-scene/.test(readFileSync(path, 'utf8'));

module.exports = class extends Sequencer {
  sort(tests) {
    const sorted = super.sort(tests);
    return [...sorted.filter((test) => !needsMuch(test)), ...sorted.filter(needsMuch)];
  }
};
