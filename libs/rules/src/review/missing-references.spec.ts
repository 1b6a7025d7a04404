import type { Reason } from '#libs/contracts';
import { outcomeOfReview, withHolders, type WaitingChange } from './missing-references.js';

const missing = (fragment: string, needs: string, message = `the node has no ${needs}`): Reason => ({
  fragment,
  field: 'spec.policy',
  code: 'missing-reference',
  message,
  nodes: ['n1'],
  needs,
});
const waiting = (change: string, applied: readonly string[], needs: readonly string[]): WaitingChange => ({
  change,
  applied,
  needs,
});
const messages = (applied: readonly string[], ...others: readonly WaitingChange[]): readonly string[] =>
  withHolders([missing('Mwan3Rule/r', 'Mwan3Policy/p')], applied, others).map(({ message }) => message);

describe('a missing reference', () => {
  it('is as it is if no waiting change has it', () => {
    expect(messages(['Mwan3Rule/r'], waiting('c1', ['Mwan3Policy/q'], ['Mwan3Policy/z']))).toEqual([
      'the node has no Mwan3Policy/p',
    ]);
  });

  it('names the waiting change that has it, and what that one waits for', () => {
    expect(messages(['Mwan3Rule/r'], waiting('c1', ['Mwan3Policy/p'], ['Mwan3Policy/z']))).toEqual([
      'the node has no Mwan3Policy/p; c1 has it, which waits for Mwan3Policy/z',
    ]);
  });

  it('says that two changes wait for each other, and how to end it', () => {
    expect(messages(['Mwan3Rule/r', 'Mwan3Policy/q'], waiting('c1', ['Mwan3Policy/p'], ['Mwan3Policy/q']))).toEqual([
      'the node has no Mwan3Policy/p; c1 and this change wait for each other, because c1 has it and needs Mwan3Policy/q of this change: publish them as one change',
    ]);
  });

  it('says so of a longer circle, and does not follow one that it is no part of', () => {
    const far = waiting('c2', ['Mwan3Policy/far'], ['Mwan3Policy/q']);
    const near = waiting('c1', ['Mwan3Policy/p'], ['Mwan3Policy/far']);
    expect(messages(['Mwan3Policy/q'], near, far)).toEqual([
      'the node has no Mwan3Policy/p; c1 and c2 and this change wait for each other, because c1 has it and c2 needs Mwan3Policy/q of this change: publish them as one change',
    ]);
    expect(messages([], near, waiting('c2', ['Mwan3Policy/far'], ['Mwan3Policy/p']))).toEqual([
      'the node has no Mwan3Policy/p; c1 has it, which waits for Mwan3Policy/far',
    ]);
  });
});

test('a host name that is in use cannot be deleted, and the reason does not speak of looking it up', () => {
  const reason = missing('CNFService/web', 'ResolvedName/db.example.com', 'the addresses are not known yet: wait');
  const { needs, reasons } = outcomeOfReview(
    [reason],
    { applied: [], deleted: ['ResolvedName/db.example.com'] },
    false,
  );
  expect([needs, reasons.map(({ message }) => message)]).toEqual([
    [],
    [
      'the node has no ResolvedName/db.example.com after this change, and CNFService/web refers to ResolvedName/db.example.com: change or delete CNFService/web first, or in the same change',
    ],
  ]);
});
