import { once } from 'node:events';
import { Agent, createServer, request } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { FragmentView, NodeView } from '#libs/contracts';
import { testAuthority, type TestAuthority } from '#libs/testing';
import { SILENT } from '#libs/process';
import { DesiredState } from '../../../services/gateway/src/core/index.js';
import { Certificate } from '../../../services/gateway/src/shell/admission/certificate.js';
import { Webhook } from '../../../services/gateway/src/shell/admission/webhook.js';
import { labelsOf, nodeName } from '../fleet/protocol.js';
import { percentile } from '../harness/figures.js';
import { temporaryFolder } from '../harness/folders.js';
import { contentOf, file } from '../harness/manifests.js';
import { result, type Part, type PartContext, type Result } from '../harness/part.js';

const FRAGMENTS = 200;
const REQUESTS = 600;
const WARM = 50;
const GOAL_MS = 100;
const SELECTORS = [
  {},
  { matchLabels: { role: 'edge' } },
  { matchExpressions: [{ key: 'zone', operator: 'In', values: ['a', 'b'] }] },
  { matchLabels: { role: 'worker', zone: 'c' } },
] as const;

/**
 * How long an API server waits before it stores an object. The floor is the same request to a server that only parses
 * the JSON and sends an answer of the same size.
 */
export const admission: Part = {
  name: 'admission',
  what: `the webhook's response time with ${FRAGMENTS} fragments ÷ an HTTPS server that answers with as much JSON`,
  run,
};

type AskFunction = (body: string) => Promise<string>;

async function run(context: PartContext): Promise<readonly Result[]> {
  const { size, say } = context;
  const authority = await testAuthority();
  const bodies = Array.from({ length: REQUESTS + WARM }, (_, i) => bodyOf(i));
  const ours = await timesOf(await webhookOf(context, authority), bodies);
  const bare = await timesOf(await bareOf(context, authority, ours.answer), bodies);
  say(
    `p50 ${percentile(ours.times, 50).toFixed(1)} ms, p99 ${percentile(ours.times, 99).toFixed(1)} ms; bare p50 ${percentile(bare.times, 50).toFixed(1)} ms, p99 ${percentile(bare.times, 99).toFixed(1)} ms`,
  );
  const note = `${size} nodes, each with its own label, ${FRAGMENTS} fragments; ${REQUESTS} objects in sequence on one connection, for all nodes, a role or a zone, some with templates; the client runs in the same process; floor: the same requests without a review`;
  return [
    result({
      name: 'admission/p50',
      unit: 'ms',
      value: percentile(ours.times, 50),
      floor: percentile(bare.times, 50),
      note,
    }),
    result(
      { name: 'admission/p99', unit: 'ms', value: percentile(ours.times, 99), floor: percentile(bare.times, 99), note },
      { of: 'value', most: GOAL_MS },
    ),
  ];
}

async function webhookOf(context: PartContext, authority: TestAuthority): Promise<AskFunction> {
  const { certFile, keyFile } = await authority.write(temporaryFolder(context, 'admission'));
  const webhook = await new Webhook({
    port: 0,
    certificate: new Certificate(certFile, keyFile, SILENT, () => undefined),
    desired: desiredState(context.size),
    mayUse: () => Promise.resolve(true),
    logger: SILENT,
  }).start();
  context.atEnd(() => webhook.close());
  return asker(context, webhook.port, authority);
}

/** Parses the request and sends the answer of the real server. */
async function bareOf(context: PartContext, authority: TestAuthority, answer: string): Promise<AskFunction> {
  const { certFile, keyFile } = await authority.write(temporaryFolder(context, 'bare'));
  const pair = await new Certificate(certFile, keyFile, SILENT, () => undefined).read();
  const server = createServer({ ...pair }, (incoming, response) => {
    const chunks: Buffer[] = [];
    incoming
      .on('data', (chunk: Buffer) => chunks.push(chunk))
      .once('end', () => {
        JSON.parse(Buffer.concat(chunks).toString('utf8'));
        response.end(JSON.stringify(JSON.parse(answer)));
      });
  });
  server.listen(0);
  await once(server, 'listening');
  context.atEnd(() => server.closeAllConnections());
  context.atEnd(() => void server.close());
  return asker(context, (server.address() as AddressInfo).port, authority);
}

function asker(context: PartContext, port: number, { ca }: TestAuthority): AskFunction {
  const agent = new Agent({ keepAlive: true, maxSockets: 1, ca });
  context.atEnd(() => agent.destroy());
  return (body) =>
    new Promise((resolve, reject) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port,
          path: '/admit',
          method: 'POST',
          agent,
          headers: { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) },
        },
        (reply) => {
          let text = '';
          reply
            .setEncoding('utf8')
            .on('data', (chunk: string) => (text += chunk))
            .once('end', () => resolve(text))
            .once('error', reject);
        },
      );
      sent.once('error', reject).end(body);
    });
}

async function timesOf(
  ask: AskFunction,
  bodies: readonly string[],
): Promise<{ readonly times: readonly number[]; readonly answer: string }> {
  const times: number[] = [];
  let answer = '';
  for (const body of bodies) {
    const startMs = performance.now();
    answer = await ask(body);
    times.push(performance.now() - startMs);
    if (!answer.includes('"allowed":true')) throw new Error(`not allowed: ${answer}`);
  }
  return { times: times.slice(WARM), answer };
}

function desiredState(size: number): DesiredState {
  const desired = new DesiredState();
  for (let n = 0; n < size; n += 1) {
    desired.showNode({
      node: nodeName(n),
      state: 'ready',
      labels: { ...labelsOf(n), 'kubernetes.io/hostname': nodeName(n) },
      capabilities: ['kind:File', 'kind:Probe'],
    } as unknown as NodeView);
  }
  for (let i = 0; i < FRAGMENTS; i += 1)
    desired.showFragment({ fragment: fragmentOf(i), gone: false } as unknown as FragmentView);
  for (const what of ['nodes', 'fragments', 'Pool']) desired.read.add(what);
  return desired;
}

/** A tenth of the files has a template. */
const fragmentOf = (i: number): object => ({ kind: 'File', name: `f${i}`, labels: {}, spec: specOf(`f${i}`, i) });
const specOf = (name: string, i: number): object =>
  (
    file(
      name,
      `${i % 10 === 0 ? '# {{ node.name }} in {{ node.labels.rack }}\n' : ''}${contentOf(i)}`,
      SELECTORS[i % SELECTORS.length],
    ) as { readonly spec: object }
  ).spec;

/** Creations, and updates of existing objects. Every seventh claims the path of another object. */
function bodyOf(i: number): string {
  const isNew = i % 3 === 0;
  const name = isNew ? `new${i}` : `f${i % FRAGMENTS}`;
  const metadata = {
    name,
    uid: '00000000-0000-4000-8000-000000000000',
    generation: 1,
    managedFields: [
      {
        manager: 'kubectl',
        operation: 'Apply',
        apiVersion: 'sluice.dev/v1alpha1',
        fieldsType: 'FieldsV1',
        fieldsV1: {},
      },
    ],
  };
  const object = {
    apiVersion: 'sluice.dev/v1alpha1',
    kind: 'File',
    metadata,
    spec: specOf(isNew && i % 7 === 0 ? 'f1' : name, i + 1),
  };
  const before = isNew ? {} : { oldObject: { ...object, spec: specOf(name, i % FRAGMENTS) } };
  const request_ = {
    uid: `u${i}`,
    operation: isNew ? 'CREATE' : 'UPDATE',
    kind: { group: 'sluice.dev', version: 'v1alpha1', kind: 'File' },
    name,
    userInfo: { username: 'mary', groups: ['system:authenticated'] },
    object,
    ...before,
  };
  return JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: request_ });
}
