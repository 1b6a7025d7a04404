import { fromJson, type DescMessage, type JsonValue } from '@bufbuild/protobuf';
import * as report from './generated/sluice/v1/report_pb.js';
import {
  ACTION_KINDS,
  BECAUSE,
  DRAIN_OUTCOMES,
  LEASE_KINDS,
  LEASE_PHASES,
  REPORT_KINDS,
  VERDICTS,
  type ReportKind,
} from './enums.js';
import { FACTS, FACT_VERSION, type Action, type Fact, type NewFact, type TakenReport } from './facts.js';
import { plainReader } from './json-reader.js';
import { isNodeName, nodeToken } from './names.js';
import { factSubject, factTypeOf } from './subjects.js';
import {
  MOST_PATHS_ASKED,
  VIEWS,
  type NodeAlive,
  type PathAnswer,
  type PathQuery,
  type NodePace,
  type NodeReport,
  type ViewBucket,
  type ViewValues,
} from './views.js';

/** The text does not match the schema of its subject. The message names the place and the reason. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

const VOCABULARY: Readonly<Record<string, Readonly<Record<string, readonly string[]>>>> = {
  'node.reported': { report: REPORT_KINDS, verdict: VERDICTS },
  'node.lease.granted': { kind: LEASE_KINDS, phase: LEASE_PHASES },
  'node.lease.settled': { kind: LEASE_KINDS, because: BECAUSE },
  'node.lease.released': { because: BECAUSE },
  'node.drain.stopped': { outcome: DRAIN_OUTCOMES },
  leases: { kind: LEASE_KINDS, phase: LEASE_PHASES, because: ['', ...BECAUSE] },
  report: { verdict: VERDICTS },
};

const WORDS: ReadonlyMap<string, readonly (readonly [string, readonly string[]])[]> = new Map(
  Object.entries(VOCABULARY).map(([what, fields]) => [what, Object.entries(fields)]),
);

/** Reads text as the JSON of a message; unknown fields are ignored. Throws WireError. */
function decode(what: string, schema: DescMessage, text: string): Record<string, unknown> {
  try {
    const json = JSON.parse(text) as JsonValue;
    const body =
      plainReader(schema)(json) ??
      plain(schema, fromJson(schema, json, { ignoreUnknownFields: true }) as unknown as Record<string, unknown>);
    for (const [field, words] of WORDS.get(what) ?? []) checkWord(what, field, words, body[field]);
    if (what === 'leases') body['actions'] = knownActions((body['actions'] ?? []) as Action[]);
    for (const action of (body['actions'] ?? []) as Action[])
      checkWord(what, 'actions.kind', ACTION_KINDS, action.kind);
    if (what === 'node.lease.settled' && body['report'] !== undefined)
      checkWord(what, 'report.verdict', VERDICTS, (body['report'] as TakenReport).verdict);
    return body;
  } catch (error) {
    if (error instanceof WireError) throw error;
    throw new WireError(`${what}: ${(error as Error).message}`);
  }
}

/** An older applier treats an unknown action as a reboot, which absorbs everything except a drain. */
function knownActions(actions: readonly Action[]): readonly Action[] {
  if (actions.every(({ kind }) => ACTION_KINDS.includes(kind))) return actions;
  return [...actions.filter(({ kind }) => kind === 'drain'), { kind: 'reboot' }];
}

/** Removes type names from a message and its nested messages, because bodies are plain JSON. */
export function plain(schema: DescMessage, body: Record<string, unknown>): Record<string, unknown> {
  delete body['$typeName'];
  for (const field of schema.fields) {
    const inner = field.message;
    if (inner === undefined || inner.file.proto.package === 'google.protobuf') continue;
    const value = body[field.localName];
    if (value === undefined) continue;
    const all =
      field.fieldKind === 'list'
        ? (value as unknown[])
        : field.fieldKind === 'map'
          ? Object.values(value as object)
          : [value];
    for (const one of all) plain(inner, one as Record<string, unknown>);
  }
  return body;
}

function checkWord(what: string, field: string, words: readonly string[], value: unknown): void {
  if (!words.includes(value as string)) {
    throw new WireError(
      `${what}: ${field} is ${JSON.stringify(value)}, but must be one of ${words.map((word) => JSON.stringify(word)).join(', ')}`,
    );
  }
}

/** The body of a new fact: plain JSON, which is also the proto3 JSON of its message. */
export function encodeFact(fact: NewFact, at: string): string {
  const { type: _, ...body } = fact;
  return JSON.stringify({ v: FACT_VERSION, at, ...body });
}

/** Reads a fact. Throws WireError if it is not one, or has a higher version than this code knows. */
export function decodeFact(subject: string, text: string): Fact {
  const type = factTypeOf(subject);
  if (type === undefined) throw new WireError(`${subject}: not a subject of the ledger`);
  const version = versionOf(text);
  if (version > FACT_VERSION)
    throw new WireError(
      `${subject}: version ${version} is newer than ${FACT_VERSION}, the newest that this copy can read: upgrade it`,
    );
  const body = decode(type, FACTS[type].schema, text);
  body['type'] = type;
  const fact = body as unknown as Fact;
  if (type !== 'ledger.voided' && type !== 'ledger.upgraded' && factSubject(fact) !== subject)
    throw new WireError(`${subject}: the body belongs to another subject: ${factSubject(fact).slice(0, 300)}`);
  return fact;
}

/** Checked first, because nothing else in a newer fact can be relied on. */
function versionOf(text: string): number {
  const match = /^\{"v":(\d+)/.exec(text);
  if (match !== null) return Number(match[1]);
  try {
    return Number((JSON.parse(text) as { readonly v?: unknown } | null)?.v ?? 0);
  } catch {
    return 0;
  }
}

/** In UTF-16 units. UTF-8 has at most three times as many bytes. */
export const MAX_REPORT_CHARACTERS = 256 * 1024;

/** Reads a node's report. Its kind and node are in the subject. Throws WireError. */
export function decodeReport(subject: string, text: string): NodeReport {
  const [, kind, token] = subject.split('.');
  if (!REPORT_KINDS.includes(kind as ReportKind) || token === undefined)
    throw new WireError(`${subject}: not a subject for reports`);
  // Parts of a report become part of a fact and of a view, which have their own size limits.
  if (text.length > MAX_REPORT_CHARACTERS)
    throw new WireError(`${subject}: the report has ${text.length} characters; the limit is ${MAX_REPORT_CHARACTERS}`);
  const body = decode('report', report.NodeReportSchema, text) as unknown as Omit<NodeReport, 'kind'>;
  checkNode(subject, body.node, token);
  return { ...body, kind: kind as ReportKind };
}

/** The only kind of report that always contains this field. The others omit it if it is empty. */
const FIELD_KINDS: Readonly<Partial<Record<keyof NodeReport, ReportKind>>> = {
  labels: 'announced',
  capabilities: 'announced',
  fresh: 'announced',
  version: 'announced',
  durationMs: 'applied',
  changed: 'applied',
  probe: 'invalid',
  differences: 'drifted',
  failingProbes: 'probed',
  notUndone: 'failed',
  leftovers: 'announced',
  needsRestart: 'failed',
  step: 'progress',
};

/** The body of a report. */
export function encodeReport(report: NodeReport): string {
  const fields = Object.entries(report).filter(([field, value]) => {
    const by = FIELD_KINDS[field as keyof NodeReport];
    return field !== 'kind' && (by === undefined || by === report.kind || !isNothing(value));
  });
  return JSON.stringify(Object.fromEntries(fields));
}

const isNothing = (value: unknown): boolean => !value || (typeof value === 'object' && Object.keys(value).length === 0);

/** Reads a node's heartbeat. Throws WireError. */
export function decodeAlive(subject: string, text: string): NodeAlive {
  const body = decode('alive', report.NodeAliveSchema, text) as unknown as NodeAlive;
  checkNode(subject, body.node, subject.split('.')[1]);
  checkTime(subject, 'everyMs', body.everyMs);
  checkTime(subject, 'pacedMs', body.pacedMs);
  return body;
}

/** Reads a request for a heartbeat interval. Throws WireError. */
export function decodePace(text: string): NodePace {
  const pace = decode('pace', report.NodePaceSchema, text) as unknown as NodePace;
  checkTime('pace', 'everyMs', pace.everyMs);
  return pace;
}

/** Reads which paths of a node a tool asks for. Throws WireError. */
export function decodePathQuery(text: string): PathQuery {
  const query = decode('paths', report.PathQuerySchema, text) as unknown as PathQuery;
  const most = Math.max(query.paths.length, query.entries.length);
  if (most > MOST_PATHS_ASKED)
    throw new WireError(`a request for ${most} paths, but at most ${MOST_PATHS_ASKED} are allowed`);
  return query;
}

/** Reads what a node found at the paths. Throws WireError. */
export const decodePathAnswer = (text: string): PathAnswer =>
  decode('paths', report.PathAnswerSchema, text) as unknown as PathAnswer;

function checkTime(subject: string, field: string, ms: number): void {
  if (!Number.isFinite(ms) || ms < 0)
    throw new WireError(`${subject}: ${field} is ${ms}, but must be a number of milliseconds, at least 0`);
}

/** Keys and subjects are built from node names, so only valid names are accepted. */
function checkNode(subject: string, node: string, token: string | undefined): void {
  if (!isNodeName(node))
    throw new WireError(`${subject}: node is ${JSON.stringify(node.slice(0, 300))}, but must be a DNS subdomain`);
  if (nodeToken(node) !== token)
    throw new WireError(`${subject}: the body names the node ${JSON.stringify(node)}, but the subject names another`);
}

/** Reads the value of a view's key. Throws WireError. */
export function decodeView<B extends ViewBucket>(bucket: B, text: string): ViewValues[B] {
  return decode(bucket, VIEWS[bucket].schema, text) as unknown as ViewValues[B];
}

export const encodeView = <B extends ViewBucket>(_bucket: B, value: ViewValues[B]): string => JSON.stringify(value);
