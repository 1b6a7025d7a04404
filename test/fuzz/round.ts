import type { Reason } from '#libs/contracts';
import { until } from '#libs/testing';
import { Chance } from '../simulation/world/chance.js';
import { edit, type Edit } from './doors/buckets.js';
import { badChange } from './doors/changes.js';
import type { DeliveredJunk } from './doors/door.js';
import { badHeartbeat, badPush, badReport } from './doors/reports.js';
import { badRequest, REQUEST_SUBJECTS } from './doors/requests.js';
import { playHostileChange } from './hostile-change.js';
import type { Stage } from './stage.js';

/** How many messages of each kind a round sends. */
const COUNTS = {
  changes: 10,
  reports: 12,
  heartbeats: 6,
  pushes: 6,
  edits: 12,
  requests: 2 * REQUEST_SUBJECTS.length,
} as const;

/** Sends everything that the seed generates, in random order. Every complaint names the message. */
export async function playRound(stage: Stage, seed: number): Promise<readonly string[]> {
  const chance = new Chance(seed, 'fuzz');
  const before = stage.signs;
  const { nodes } = stage.fleet;
  const contents = await stage.bucketContents();
  const many = <T>(count: number, make: () => T): T[] => Array.from({ length: count }, make);
  const thrown: readonly (() => Promise<readonly string[]>)[] = [
    ...many(COUNTS.changes, () => badChange(chance)).map((one) => () => change(stage, one)),
    ...many(COUNTS.reports, () => badReport(chance, nodes)).map((one) => () => report(stage, one)),
    ...many(COUNTS.heartbeats, () => badHeartbeat(chance, nodes)).map((one) => () => heartbeat(stage, one)),
    ...many(COUNTS.pushes, () => badPush(chance, nodes)).map(
      (one) => () => stage.send(one.subject, one.body).then(() => []),
    ),
    ...many(COUNTS.edits, () => edit(chance, contents)).map((one) => () => editBucket(stage, one)),
    ...REQUEST_SUBJECTS.flatMap((subject) => many(2, () => badRequest(chance, subject))).map(
      (one) => () => request(stage, one),
    ),
  ];
  const complaints: string[] = [];
  for (const one of shuffled(chance, thrown)) complaints.push(...(await one()));
  complaints.push(...(await playHostileChange(stage, seed)));
  await stage
    .rollOut(`round ${seed}`)
    .catch((error: unknown) => complaints.push(`afterwards: ${(error as Error).message}`));
  return [...complaints, ...(await stage.complaints(before))];
}

function shuffled<T>(chance: Chance, items: readonly T[]): readonly T[] {
  return items
    .map((item) => [chance.next(), item] as const)
    .sort(([a], [b]) => a - b)
    .map(([, item]) => item);
}

const ANSWERED = ['committed', 'rejected', 'ended'];

/** A change gets an answer. If it is refused, the reason names the place. */
async function change(
  stage: Stage,
  { subject, body, headers, what, field, unreadable }: DeliveredJunk,
): Promise<readonly string[]> {
  const sequence = await stage.store(subject, body, headers);
  if (sequence === undefined) return [];
  const description = `c${sequence} (${what}, to ${subject.slice(0, 60)})`;
  const view = await until(async () => {
    const text = await stage.last('KV_changes', `$KV.changes.c${sequence}`);
    const found = text === undefined || text === '' ? undefined : parsed(text);
    return found !== undefined && ANSWERED.includes(found['phase'] as string) ? found : undefined;
  }, description).catch((error: unknown) => (error as Error).message);
  if (typeof view === 'string') return [view];
  if (view['phase'] !== 'rejected')
    return unreadable ? [`${description} is no JSON object, and was ${String(view['phase'])}`] : [];
  const reasons = (view['reasons'] ?? []) as readonly Reason[];
  if (reasons.length === 0) return [`${description} is rejected without a reason`];
  const rejected = await stage.last('LEDGER', `config.rejected.c${sequence}`);
  if (rejected === undefined) return [`${description} is rejected, and no config.rejected says so`];
  const expectedField = /^(spec\.)?\w{1,60}$/.test(field ?? '') ? (field as string) : '';
  const names = (reason: Reason): boolean =>
    reason.message !== '' && `${reason.fragment} ${reason.field} ${reason.message}`.includes(expectedField);
  const whole = ['not-json', 'bad-id', 'too-large', 'bad-source', 'too-deep', 'truncated', 'not-unicode'];
  return reasons.some((reason) => names(reason) || whole.includes(reason.code))
    ? []
    : [`${description}: no reason names ${expectedField}: ${JSON.stringify(reasons).slice(0, 500)}`];
}

/** An unreadable report is set aside as poison. */
async function report(
  stage: Stage,
  { subject, body, headers, what, unreadable }: DeliveredJunk,
): Promise<readonly string[]> {
  const sequence = await stage.store(subject, body, headers);
  return sequence === undefined || !unreadable
    ? []
    : poisoned(stage, `REPORTS.${sequence}`, `${subject.slice(0, 60)} ${sequence} (${what})`);
}

async function heartbeat(stage: Stage, { subject, body, what, unreadable }: DeliveredJunk): Promise<readonly string[]> {
  if (!unreadable) return stage.send(subject, body).then(() => []);
  return until(async () => {
    // A heartbeat is not stored. It is lost while there is no leader.
    await stage.send(subject, body);
    return (await poisonKeys(stage)).has(`ALIVE ${subject}`);
  }, `${subject} (${what}) is set aside`).then(
    () => [],
    (error: unknown) => [(error as Error).message],
  );
}

const poisonKeys = async (stage: Stage): Promise<ReadonlySet<string>> =>
  new Set((await stage.fleet.client.inspect()).poison.map(({ stream, subject }) => `${stream} ${subject}`));

function poisoned(stage: Stage, key: string, description: string): Promise<readonly string[]> {
  return until(
    async () => (await stage.last('KV_poison', `$KV.poison.${key}`)) !== undefined,
    `${description} is set aside`,
  ).then(
    () => [],
    (error: unknown) => [(error as Error).message],
  );
}

async function editBucket(stage: Stage, { subject, body, headers }: Edit): Promise<readonly string[]> {
  await stage.request(subject, body, headers);
  return [];
}

/** A request gets an answer. An invalid request is refused with the place of the error. */
async function request(
  stage: Stage,
  { subject, body, headers, what, field, unreadable }: DeliveredJunk,
): Promise<readonly string[]> {
  const description = `${subject} (${what})`;
  const reply = await until(async () => {
    const found = await stage.request(subject, body, headers);
    // While the leader changes, there is no answer, or a copy answers that it is not the leader. Repeat, as every
    // tool does.
    return found === undefined
      ? 'closed'
      : found.headers.startsWith('NATS/1.0 503') || /"code":"unavailable"/.test(found.body)
        ? undefined
        : found;
  }, description).catch((error: unknown) => (error as Error).message);
  if (reply === 'closed') return [];
  if (typeof reply === 'string') return [reply];
  const answer = parsed(reply.body);
  if (answer === undefined) return [`${description} is answered by no JSON object: ${reply.body.slice(0, 200)}`];
  const error = answer['error'] as { readonly code?: string; readonly message?: string } | undefined;
  if (error === undefined) return unreadable ? [`${description} is no request, and is answered`] : [];
  if (error.code === 'internal' || (error.message ?? '') === '')
    return [`${description} is answered by ${JSON.stringify(error)}`];
  const expectedField =
    error.code === 'bad-request' && !unreadable && /^\w{1,60}$/.test(field ?? '') ? (field as string) : '';
  return (error.message ?? '').includes(expectedField)
    ? []
    : [`${description}: the answer does not name ${expectedField}: ${error.message?.slice(0, 300)}`];
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value)
      ? (value as Readonly<Record<string, unknown>>)
      : undefined;
  } catch {
    return undefined;
  }
}
