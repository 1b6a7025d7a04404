import type { Bus } from '#libs/nats';
import type { Logger } from '#libs/process';
import { ProblemNotes } from './problem-notes.js';

const logged: string[] = [];
const log = {
  debug: () => undefined,
  info: (_: object, text: string) => void logged.push(text),
  warn: (_: object, text: string) => void logged.push(text),
  error: () => undefined,
} as Logger;
const notes = new ProblemNotes({ bus: {} as Bus, targets: 'clusters', version: '0', log });
beforeEach(() => void (logged.length = 0));

it('names a target that does not join because its entry cannot be used only once', () => {
  const problem = { object: 'Secret fleet/a', reason: 'it has no kubeconfig', todo: 'put one there' };
  notes.update([problem]);
  notes.note('a.fleet', problem.reason);
  notes.note('b.fleet', 'it does not answer');
  expect(logged).toEqual([
    'Secret fleet/a is not served: it has no kubeconfig',
    'b.fleet is not served: it does not answer',
  ]);
});

it('names a target that another applier has too, whether it joins or not', () => {
  notes.contest('c.fleet', true);
  notes.note('c.fleet', undefined);
  notes.contest('c.fleet', false);
  const words = 'c.fleet is not served: another applier takes it over again and again';
  expect(logged).toEqual([words, `no longer so: ${words}`]);
});
