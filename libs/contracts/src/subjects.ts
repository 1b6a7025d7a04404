import { FACT_TYPES, type Fact, type FactType, type NewFact } from './facts.js';
import { nodeOfToken, nodeToken } from './names.js';
import { REPORT_KINDS, type ReportKind } from './enums.js';

/** The tokens after the type in the subject of a fact, in order. */
export type SubjectKey = 'change' | 'hash' | 'node' | 'pool' | 'sequence';

/** The tokens after the type: `node.lease.granted` is followed by pool and node. */
export function subjectKeys(type: FactType): readonly SubjectKey[] {
  if (type.startsWith('node.lease.')) return ['pool', 'node'];
  if (type.startsWith('node.')) return ['node'];
  if (type === 'config.judged' || type === 'config.cleared') return ['hash'];
  if (type === 'ledger.upgraded') return [];
  if (type === 'ledger.voided') return ['sequence'];
  return ['change'];
}

/** The subject under which a fact is appended. */
export function factSubject(fact: NewFact | Fact): string {
  const values = fact as unknown as Readonly<Record<SubjectKey, string | number>>;
  const tokens = subjectKeys(fact.type).map((key) =>
    key === 'node' ? nodeToken(String(values.node)) : String(values[key]),
  );
  return [fact.type, ...tokens].join('.');
}

/** The filter that matches every fact of a type. */
export const factFilter = (type: FactType): string => [type, ...subjectKeys(type).map(() => '*')].join('.');

/** Every subject of the stream LEDGER. */
export const LEDGER_SUBJECTS: readonly string[] = FACT_TYPES.map(factFilter);

const DEPTHS: ReadonlyMap<string, number> = new Map(FACT_TYPES.map((type) => [type, subjectKeys(type).length]));

/** The type of fact that a subject holds; undefined for a subject that is not the ledger's. */
export function factTypeOf(subject: string): FactType | undefined {
  let type = subject;
  for (let keys = 0; keys <= 2; keys += 1) {
    if (DEPTHS.get(type) === keys) return type as FactType;
    const dot = type.lastIndexOf('.');
    if (dot < 0) return undefined;
    type = type.slice(0, dot);
  }
  return undefined;
}

export const reportSubject = (kind: ReportKind, node: string): string => `node.${kind}.${nodeToken(node)}`;
export const REPORT_FILTERS = {
  all: REPORT_KINDS.map((kind) => `node.${kind}.*`),
  announced: 'node.announced.*',
} as const;
/** The node that sent a report with this subject; undefined if the subject is not one of a report. */
export function reporterOf(subject: string): string | undefined {
  const [kind, token] = [subject.slice(0, subject.lastIndexOf('.')), subject.slice(subject.lastIndexOf('.') + 1)];
  return REPORT_FILTERS.all.includes(`${kind}.*`) ? nodeOfToken(token) : undefined;
}
export const aliveSubject = (node: string): string => `alive.${nodeToken(node)}`;
/** The prefix of the subjects at which a node gets answers, so that permissions can keep others from reading them. */
export const nodeInbox = (node: string): string => `_INBOX_${nodeToken(node)}`;
export const desiredSubject = (source: string): string => `config.desired.${source}`;
/** The source in the subject of a change. */
export const sourceOf = (subject: string): string => subject.slice(desiredSubject('').length);
/** Where leases and status are republished to nodes, where a node receives its heartbeat interval, and requests. */
export const pushSubject = (bucket: 'leases' | 'status' | 'pace' | 'paths' | 'why', node: string): string =>
  `push.${bucket}.${nodeToken(node)}`;
/** The key of a node's config in the bucket `configs`. */
export const configKey = (node: string, hash: string): string => `${nodeToken(node)}.${hash}`;
/** Subjects of the stream OBJECTS. */
export const OBJECT_SUBJECTS = 'blobs.*.*';
/** Where a chunk of an object is, or what is known about it. The filter `blobs.<sha256>.*` covers all of an object. */
export const objectSubject = (sha256: string, part: number | 'info' | '*'): string => `blobs.${sha256}.${part}`;
