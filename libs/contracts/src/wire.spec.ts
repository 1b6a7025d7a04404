import fc from 'fast-check';
import { decodeReport, encodeReport, REPORT_KINDS, reportSubject, VERDICTS, type NodeReport } from './index.js';

const text = fc.string({ maxLength: 5 });
const texts = fc.array(text, { maxLength: 2 });
const count = fc.nat({ max: 2 ** 32 - 1 });
const report: fc.Arbitrary<NodeReport> = fc.record({
  kind: fc.constantFrom(...REPORT_KINDS), v: fc.constant(1), at: text, node: fc.constant('w-1.dc1'), incarnation: count, birth: count, seq: count, bootId: text, hash: text, lease: text,
  verdict: fc.constantFrom(...VERDICTS), reason: text, restored: fc.boolean(), change: text, pool: text, labels: fc.dictionary(text, text, { maxKeys: 2, noNullPrototype: true }), capabilities: texts,
  fresh: fc.boolean(), version: text, durationMs: count, changed: texts, probe: text, what: texts, step: text,
});

describe('a report on the wire', () => {
  test('is read as it was written, though what its kind does not say is left out where it is empty', () => {
    fc.assert(fc.property(report, (said) => {
      expect(decodeReport(reportSubject(said.kind, said.node), encodeReport(said))).toEqual(said);
    }));
  });

  test('says what its kind promises, also when that is nothing', () => {
    const [nothing] = fc.sample(report, { numRuns: 1, seed: 1 }) as [NodeReport];
    const empty = { ...nothing, labels: {}, capabilities: [], fresh: false, version: '', durationMs: 0, changed: [], probe: '', what: [], step: '', reason: '', restored: false };
    const fields = (kind: NodeReport['kind']) => Object.keys(JSON.parse(encodeReport({ ...empty, kind })) as object);
    expect(fields('announced')).toEqual(expect.arrayContaining(['labels', 'capabilities', 'hash', 'lease', 'verdict', 'reason', 'restored', 'incarnation', 'birth', 'seq', 'fresh', 'version', 'bootId']));
    expect(fields('applied')).toEqual(expect.arrayContaining(['durationMs', 'changed', 'pool', 'change', 'lease', 'hash']));
    expect(fields('applied')).not.toEqual(expect.arrayContaining(['labels']));
    expect(fields('invalid')).toEqual(expect.arrayContaining(['reason', 'probe', 'restored']));
    expect(fields('failed')).toEqual(expect.arrayContaining(['reason', 'restored']));
    expect(fields('drifted')).toEqual(expect.arrayContaining(['what']));
  });
});
