import type { Fragment } from '#libs/contracts';
import { file } from '#libs/testing';
import { Installation, types } from './installation.fixture.js';

const DAY = 24 * 3_600_000;
const CAPABILITIES = ['kind:File', 'kind:Vrf', 'kind:Layer2Network', 'kind:BgpPeering', 'action:reboot'];
const fragment = (kind: string, name: string, spec: object): Fragment => ({
  kind,
  name,
  labels: {},
  spec: { nodeSelector: {}, ...spec } as Fragment['spec'],
});
const vrf = fragment('Vrf', 'red', { vrf: 'red' });
const network = (name: string, id: number): Fragment => fragment('Layer2Network', name, { id, vrf: 'red' });

function fleet(): Installation {
  const one = new Installation();
  one.starts(['n0', 'n1']);
  for (const node of ['n0', 'n1']) one.announces(node, { capabilities: CAPABILITIES });
  one.quiet();
  return one;
}
const viewOf = (one: Installation, change: string) => one.merger.read().view('changes', change);
const configOf = (one: Installation, node: string): string => one.text(node, one.status(node).hash);

describe('a change that refers to something that does not exist', () => {
  it('waits without holding up other fragments, and rolls out once it exists', () => {
    const one = fleet();
    const early = one.rolls([network('blue', 100)]);
    expect(viewOf(one, early)).toMatchObject({ phase: 'waiting', needs: ['Vrf/red'], waitsFor: [] });
    expect(one.validator.view('reviews', early)).toMatchObject({
      verdict: 'blocked',
      reasons: [{ fragment: 'Layer2Network/blue', field: 'spec.vrf', needs: 'Vrf/red', nodes: ['n0', 'n1'] }],
    });
    expect(one.atWork()).toEqual([]);

    const other = one.commits([file('motd', 'hi')]);
    expect([one.phase(other), one.phase(early)]).toEqual(['committed', 'waiting']);

    const reference = one.rolls([vrf]);
    one.allApply();
    expect([one.phase(reference), one.phase(early)]).toEqual(['committed', 'committed']);
    expect(viewOf(one, early)).toMatchObject({ needs: [], needsUntilMs: 0 });
    for (const node of ['n0', 'n1'])
      for (const name of ['motd', 'red', 'blue']) expect(configOf(one, node)).toContain(`"name":"${name}"`);
  });

  it('is rendered again only when a fragment of that kind is committed', () => {
    const one = fleet();
    const early = one.rolls([network('blue', 100)]);
    one.commits([file('motd', 'hi')]);
    one.commits([fragment('Layer2Network', 'plain', { id: 7 })]);
    expect(viewOf(one, early).attempt).toBe(1);
    one.commits([fragment('Vrf', 'other', { vrf: 'other' })]);
    expect(viewOf(one, early)).toMatchObject({ attempt: 2, phase: 'waiting', needs: ['Vrf/red'] });
  });

  it('is rejected after its time, which a restart does not extend', () => {
    const one = fleet();
    const early = one.rolls([network('blue', 100)]);
    const untilMs = viewOf(one, early).needsUntilMs;
    expect(untilMs - one.validator.nowMs).toBe(DAY);
    one.after(DAY / 2);
    one.commits([fragment('Vrf', 'other', { vrf: 'other' })]);
    expect(viewOf(one, early).needsUntilMs).toBe(untilMs);
    const restarted = one.newValidator();
    restarted.nowMs = untilMs - 1;
    expect(restarted.when()).toEqual([]);
    restarted.nowMs = untilMs;
    expect(types(restarted.when())).toEqual(['config.rejected']);
    one.quiet();
    expect(viewOf(one, early)).toMatchObject({ phase: 'rejected', needs: [], needsUntilMs: 0 });
    expect(viewOf(one, early).reasons[0]?.message).toBe(
      'the node has no Vrf for the VRF red: the change waited 24h for it',
    );
  });

  it('may say how long it waits, or that it does not', () => {
    const one = fleet();
    const short = one.rolls([network('blue', 100)], { strategy: { needsTimeout: '5m' } });
    expect(viewOf(one, short).needsUntilMs - one.validator.nowMs).toBe(300_000);
    const strict = one.rolls([network('green', 200)], { strategy: { strict: true } });
    expect(viewOf(one, strict)).toMatchObject({ phase: 'rejected', reasons: [{ code: 'missing-reference' }] });
  });

  it('is rejected at once if something else is wrong with it, too', () => {
    const one = fleet();
    const change = one.rolls([network('blue', 100), network('again', 100)]);
    const codes = viewOf(one, change).reasons.map(({ code }) => code);
    expect([one.phase(change), new Set(codes)]).toEqual(['rejected', new Set(['conflict', 'missing-reference'])]);
  });

  it('lets a correction of its own source pass, and leaves those fragments to it', () => {
    const one = fleet();
    const early = one.rolls([network('blue', 100), network('green', 200)]);
    const partial = one.rolls([fragment('Layer2Network', 'blue', { id: 100 })]);
    expect(viewOf(one, partial)).toMatchObject({ phase: 'rolling', waitsFor: [], needs: [] });
    one.allApply();
    expect([one.phase(partial), one.phase(early)]).toEqual(['committed', 'waiting']);
    const whole = one.rolls(['blue', 'green'].map((name, i) => fragment('Layer2Network', name, { id: i + 1 })));
    one.allApply();
    expect([early, partial, whole].map((change) => one.phase(change))).toEqual(['ended', 'committed', 'committed']);
  });

  it('holds up changes of the same fragments by another source', () => {
    const one = fleet();
    const early = one.rolls([network('blue', 100), network('green', 200)]);
    const other = one.rolls([fragment('Layer2Network', 'blue', { id: 100 })], { source: 'other' });
    expect(viewOf(one, other)).toMatchObject({ phase: 'waiting', waitsFor: [early], needs: [] });
    one.asks({ op: 'rollout.abort', change: early, by: 'me', reason: 'a typo' });
    one.quiet();
    one.allApply();
    expect([early, other].map((change) => one.phase(change))).toEqual(['ended', 'committed']);
  });

  it('ends at once if it is aborted', () => {
    const one = fleet();
    const early = one.rolls([network('blue', 100)]);
    one.asks({ op: 'rollout.abort', change: early, by: 'me', reason: 'a typo' });
    one.quiet();
    expect(viewOf(one, early)).toMatchObject({ phase: 'ended', outcome: 'aborted', needs: [] });
  });

  it('is told which waiting change has it, and that the two wait for each other', () => {
    const one = fleet();
    const green = fragment('Vrf', 'green', { vrf: 'green' });
    const first = one.rolls([network('blue', 100), green]);
    const second = one.rolls([fragment('Layer2Network', 'pink', { id: 200, vrf: 'green' }), vrf]);
    expect([viewOf(one, first).needs, viewOf(one, second).needs]).toEqual([['Vrf/red'], ['Vrf/green']]);
    const messages = (change: string) => one.validator.view('reviews', change)?.reasons.map(({ message }) => message);
    expect(messages(second)).toEqual([
      `the node has no Vrf for the VRF green; ${first} and this change wait for each other, because ${first} has it and needs Vrf/red of this change: publish them as one change`,
    ]);
    // The earlier one, too, as long as the later one waits.
    expect(messages(first)).toEqual([
      `the node has no Vrf for the VRF red; ${second} and this change wait for each other, because ${second} has it and needs Vrf/green of this change: publish them as one change`,
    ]);
    one.asks({ op: 'rollout.abort', change: second, by: 'me', reason: 'a circle' });
    one.quiet();
    expect(messages(first)).toEqual(['the node has no Vrf for the VRF red']);
  });

  it('waits in every step of a chain', () => {
    const one = fleet();
    const peering = one.rolls([fragment('BgpPeering', 'peers', { network: 'blue', remoteAs: 64_512 })]);
    const gateways = { id: 100, vrf: 'red', anycastMac: '02:00:00:00:00:01', anycastGateways: ['10.0.0.1/24'] };
    const middle = one.rolls([fragment('Layer2Network', 'blue', gateways)]);
    expect([viewOf(one, peering).needs, viewOf(one, middle).needs]).toEqual([['Layer2Network/blue'], ['Vrf/red']]);
    one.commits([vrf]);
    expect([peering, middle].map((change) => one.phase(change))).toEqual(['committed', 'committed']);
  });
});

describe('what other fragments refer to', () => {
  it('cannot be taken away, and the reason names them and the way out', () => {
    const one = fleet();
    one.commits([vrf, network('blue', 100)]);
    const gone = one.rolls([], { remove: [{ kind: 'Vrf', name: 'red' }] });
    expect(viewOf(one, gone)).toMatchObject({ phase: 'rejected', reasons: [{ fragment: 'Layer2Network/blue' }] });
    expect(viewOf(one, gone).reasons[0]?.message).toBe(
      'the node has no Vrf for the VRF red after this change, and Layer2Network/blue refers to Vrf/red: change or delete Layer2Network/blue first, or in the same change',
    );
    const both = one.rolls([], { remove: [vrf, network('blue', 100)].map(({ kind, name }) => ({ kind, name })) });
    one.allApply();
    expect(one.phase(both)).toBe('committed');
  });

  it('cannot be taken away by the change that refers to it: that change does not wait', () => {
    const one = fleet();
    one.commits([vrf]);
    const change = one.rolls([network('blue', 100)], { remove: [{ kind: 'Vrf', name: 'red' }] });
    expect(one.phase(change)).toBe('rejected');
  });
});
