import { EMPTY_HASH, restOfDrift } from '#libs/contracts';
import { selectorOf } from '#libs/manifests';
import { EVERY_NODE } from './possible-configs.js';
import {
  UNKNOWN,
  withoutContent,
  type Behind,
  type Change,
  type CommittedFragment,
  type NotReady,
  type PossibleConfigs,
  type SelectorSince,
  type Usage,
  type Work,
} from './state.js';

type Rows<V> = readonly (readonly [string, V])[];

/** As it was before version 17: one selector, and since when there is such a fragment. */
type OneSelector = Omit<CommittedFragment, 'selectors'> & { readonly since: number };

/** Before version 17: what labels of before selected up to this generation. */
interface Former {
  readonly labels: Readonly<Record<string, string>>;
  readonly generation: number;
}

/** Each brings a dump of this version to the next one. */
export const MIGRATIONS: Readonly<Record<number, (dumped: unknown) => unknown>> = {
  // Version 2 kept the content of ended changes. The stream CHANGES has it, too.
  2: (dumped) => {
    const all = dumped as { readonly changes: Rows<Change> };
    return {
      ...all,
      changes: all.changes.map(([name, change]) => [name, change.open ? change : withoutContent(change)]),
    };
  },
  // Version 3 did not say to which source a fragment belongs and what a change replaced, and remembered no ids: no
  // change from before can be rolled back.
  3: (dumped) => {
    const { changes, fragments, goneFragments, ...rest } = dumped as {
      readonly changes: Rows<Change>;
      readonly fragments: Rows<Omit<CommittedFragment, 'source'>>;
      readonly goneFragments: Rows<Omit<CommittedFragment, 'source'>>;
    };
    const sources = new Map(changes.map(([name, { source }]) => [name, source]));
    const owned = (rows: typeof fragments): Rows<CommittedFragment> =>
      rows.map(([id, row]) => [id, { ...row, source: sources.get(row.change) ?? 'unknown' }]);
    const open = changes.filter(([, change]) => change.open);
    return {
      ...rest,
      changes: open,
      fragments: owned(fragments),
      goneFragments: owned(goneFragments),
      firstUses: [],
      usage: [],
    };
  },
  // Version 4 did not know which probes fail.
  4: (dumped) => ({ ...(dumped as object), failing: [] }),
  // Version 5 counted sources with invalid names apart.
  5: (dumped) => dumped,
  // Version 6 forgot ended changes that were rolled out together with the others.
  6: (dumped) => dumped,
  // Version 7 kept which nodes were deferred.
  7: (dumped) => dumped,
  // Version 8 did not count what was rejected because of a quota.
  8: (dumped) => {
    const all = dumped as { readonly usage: Rows<Omit<Usage, 'refusals'>> };
    return { ...all, usage: all.usage.map(([source, use]) => [source, { ...use, refusals: 0 }]) };
  },
  // Version 9 had no changes that wait for missing references.
  9: (dumped) => {
    const all = dumped as { readonly changes: Rows<Change> };
    return { ...all, changes: all.changes.map(([name, row]) => [name, { ...row, needs: [], needsUntilMs: 0 }]) };
  },
  // Version 10 did not know which nodes are up to date. Until they report, all of them count as that.
  10: (dumped) => {
    const { fragments, goneFragments, ...rest } = dumped as {
      readonly changes: Rows<Change>;
      readonly fragments: Rows<CommittedFragment>;
      readonly goneFragments: Rows<CommittedFragment>;
    };
    const changes = new Map(rest.changes);
    const dated = (rows: typeof fragments): Rows<CommittedFragment> =>
      rows.map(([id, row]) => {
        const { generation = 0, endedAt = '' } = changes.get(row.change) ?? {};
        return [id, { ...row, generation, appliedAt: endedAt }];
      });
    const nothing = { inForce: [], behind: [], work: [], notReady: [] };
    return {
      ...rest,
      changes: rest.changes.map(([name, row]) => [name, { ...row, incompatible: [] }]),
      fragments: dated(fragments),
      goneFragments: dated(goneFragments),
      ...nothing,
    };
  },
  // Version 11 did not know what had drifted.
  11: (dumped) => {
    const all = dumped as { readonly notReady: Rows<readonly (NotReady | 'drifted')[]> };
    const drifted = all.notReady.filter(([, whys]) => whys.includes('drifted'));
    return {
      ...all,
      drift: drifted.map(([node]) => [node, [restOfDrift(1)]]),
      notReady: all.notReady
        .map(([node, whys]) => [node, whys.filter((why) => why !== 'drifted')] as const)
        .filter(([, whys]) => whys.length > 0),
    };
  },
  // Version 12 had no host names.
  12: (dumped) => ({ ...(dumped as object), published: [] }),
  // Version 13 did not know what relabelled nodes still have.
  13: (dumped) => ({ ...(dumped as object), former: [] }),
  // Version 14 did not know which changes are paused while they wait, and since when there is a fragment: every node
  // that lacks something may have it. Generation 0 also meant that nobody knows what a node has.
  14: (dumped) => {
    const all = dumped as {
      readonly changes: Rows<Change>;
      readonly fragments: Rows<Omit<OneSelector, 'since'>>;
      readonly goneFragments: Rows<Omit<OneSelector, 'since'>>;
      readonly behind: Rows<Behind>;
      readonly former: Rows<readonly Former[]>;
    };
    const unsure = <T extends { readonly generation: number }>(one: T): T =>
      one.generation === 0 ? { ...one, generation: UNKNOWN } : one;
    const old = (rows: Rows<Omit<OneSelector, 'since'>>): Rows<OneSelector> =>
      rows.map(([id, row]) => [id, { ...row, since: 0 }]);
    return {
      ...all,
      changes: all.changes.map(([name, row]) => [name, { ...row, paused: '' }]),
      fragments: old(all.fragments),
      goneFragments: old(all.goneFragments),
      behind: all.behind.map(([node, row]) => [node, unsure(row)]),
      former: all.former.map(([node, rows]) => [node, rows.map(unsure)]),
      unanswered: [],
    };
  },
  // Version 15 had no bindings.
  15: (dumped) => ({ ...(dumped as object), publishedValues: [] }),
  // Version 16 knew only the last selector of a fragment: what was changed since it was first applied may have been for
  // any node. It did not say what relabelled nodes and those with an unanswered lease may have.
  16: (dumped) => {
    const { former, unanswered, ...all } = dumped as {
      readonly fragments: Rows<OneSelector>;
      readonly goneFragments: Rows<OneSelector>;
      readonly behind: Rows<Behind>;
      readonly former: Rows<unknown>;
      readonly unanswered: Rows<unknown>;
      readonly notReady: Rows<readonly NotReady[]>;
      readonly inForce: Rows<string>;
      readonly work: Rows<Work>;
    };
    const inForce = new Map(all.inForce);
    const degraded = all.notReady.filter(([, whys]) => whys.includes('degraded'));
    const unsure = new Set([...former, ...unanswered, ...degraded].map(([node]) => node));
    const behind = new Map(all.behind);
    const leased = new Set(all.work.flatMap(([node, { state }]) => (state === 'applying' ? [node] : [])));
    const possible = (node: string): PossibleConfigs => {
      const hash = inForce.get(node) ?? '';
      const known = hash === EMPTY_HASH ? { generation: 0, change: '' } : behind.get(node);
      const from = unsure.has(node) ? undefined : known;
      return {
        configs: [{ hash, ...(from ?? { generation: UNKNOWN, change: '' }) }],
        lease: leased.has(node) ? 'unknown' : '',
      };
    };
    const rows = new Set([...behind.keys(), ...[...former, ...unanswered].map(([node]) => node)]);
    return {
      ...all,
      fragments: all.fragments.map(([id, row]) => [id, withSelectors(row, { selector: selectorOf(row.fragment) })]),
      goneFragments: all.goneFragments.map(([id, row]) => [id, withSelectors(row, {})]),
      possibleConfigs: [...rows].map((node) => [node, possible(node)]),
      triedSelectors: [],
    };
  },
  // Version 17 did not know what is left of deleted fragments.
  17: (dumped) => ({ ...(dumped as object), leftovers: [] }),
};

function withSelectors({ since, ...row }: OneSelector, last: Pick<SelectorSince, 'selector'>): CommittedFragment {
  const first = since < row.generation ? [{ since, selector: EVERY_NODE }] : [];
  return { ...row, selectors: [...first, { since: row.generation, ...last }] };
}
