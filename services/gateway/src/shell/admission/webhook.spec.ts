import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import type { NodeView } from '#libs/contracts';
import { KINDS } from '#libs/manifests';
import { settingsFrom, SILENT } from '#libs/process';
import { testAuthority, until, type TestAuthority } from '#libs/testing';
import { DesiredState } from '../../core/index.js';
import { Certificate } from './certificate.js';
import { Webhook, webhookFrom } from './webhook.js';

describe('the webhook', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-webhook-'));
  const wanted = new DesiredState();
  let authority: TestAuthority;
  let webhook: Webhook;
  beforeAll(async () => {
    authority = await testAuthority();
    const { certFile, keyFile } = await authority.write(folder);
    wanted.showNode({
      node: 'n1',
      state: 'ready',
      labels: { role: 'edge' },
      capabilities: ['kind:File'],
    } as unknown as NodeView);
    webhook = await new Webhook({
      port: 0,
      certificate: new Certificate(certFile, keyFile, SILENT, () => undefined),
      desired: wanted,
      mayUse: () => Promise.resolve(true),
      logger: SILENT,
      lookMs: 20,
    }).start();
  });
  afterAll(async () => {
    await webhook?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const ask = (method: string, path: string, body = ''): Promise<{ readonly code: number; readonly text: string }> =>
    new Promise((found, failed) => {
      const sent = request(
        {
          host: '127.0.0.1',
          port: webhook.port,
          method,
          path,
          ca: authority.ca,
          agent: false,
          headers: { 'content-length': Buffer.byteLength(body) },
        },
        (reply) => {
          let text = '';
          reply
            .setEncoding('utf8')
            .on('data', (chunk: string) => (text += chunk))
            .once('end', () => found({ code: reply.statusCode ?? 0, text }));
        },
      );
      sent.once('error', failed).end(body);
    });

  it('is unhealthy and gives no answer until everything was read', async () => {
    const body = JSON.stringify({
      kind: 'AdmissionReview',
      request: {
        uid: 'u',
        operation: 'CREATE',
        kind: { kind: 'File' },
        userInfo: {},
        object: { metadata: { name: 'a' }, spec: { nodeSelector: {}, path: '/a', content: '' } },
      },
    });
    expect([(await ask('GET', '/healthz')).code, (await ask('POST', '/admit', body)).code]).toEqual([503, 503]);
    for (const what of ['fragments', 'nodes', 'Pool']) wanted.read.add(what);
    expect([await ask('GET', '/healthz'), (await ask('POST', '/admit?timeout=3s', body)).code]).toEqual([
      { code: 200, text: 'ok\n' },
      200,
    ]);
  });

  it.each([
    ['GET', '/admit', '', 404],
    ['POST', '/', '', 404],
    ['POST', '/admit', '', 400],
    ['POST', '/admit', '{', 400],
    ['POST', '/admit', '{"kind":"AdmissionReview"}', 400],
    ['POST', '/admit', `"${'x'.repeat(9 * 1_024 * 1_024)}"`, 413],
  ])('%s %s with %.20s is refused, and the next request is answered', async (method, path, body, code) => {
    // The server may cut off a client that sends too much before it has sent everything.
    const answer = await ask(method, path, body).catch((error: NodeJS.ErrnoException) => ({
      code: error.code === 'EPIPE' || error.code === 'ECONNRESET' ? 413 : 0,
    }));
    expect([answer.code, (await ask('GET', '/healthz')).code]).toEqual([code, 200]);
  });

  it('answers any review with a review of the same uid, and never fails', async () => {
    const object = fc.oneof(
      fc.record({
        metadata: fc.oneof(
          fc.record({ name: fc.oneof(fc.constant('a'), fc.jsonValue()), labels: fc.jsonValue() }),
          fc.jsonValue(),
        ),
        spec: fc.oneof(
          fc.jsonValue(),
          fc.record({
            nodeSelector: fc.oneof(fc.constant({}), fc.jsonValue()),
            path: fc.jsonValue(),
            content: fc.jsonValue(),
            editors: fc.jsonValue(),
          }),
        ),
      }),
      fc.jsonValue(),
    );
    const kind = fc.constantFrom(...KINDS.map(({ name }) => name));
    const review = fc.record({
      uid: fc.uuid(),
      operation: fc.constantFrom('CREATE', 'UPDATE', 'DELETE', 'CONNECT'),
      kind: fc.oneof(
        kind.map((name) => ({ kind: name })),
        fc.jsonValue(),
      ),
      userInfo: fc.jsonValue(),
      object,
      oldObject: object,
      subResource: fc.option(fc.jsonValue(), { nil: undefined }),
    });
    await fc.assert(
      fc.asyncProperty(review, async (drawn) => {
        const { code, text } = await ask(
          'POST',
          '/admit',
          JSON.stringify({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: drawn }),
        );
        expect([200, 400]).toContain(code);
        if (code === 200)
          expect(JSON.parse(text)).toMatchObject({
            kind: 'AdmissionReview',
            response: { uid: drawn.uid, allowed: expect.any(Boolean) as unknown },
          });
      }),
      { numRuns: 300, seed: 7 },
    );
  });

  it('keeps its certificate if the replacement cannot be used', async () => {
    writeFileSync(join(folder, 'tls.crt'), 'no certificate');
    await until(() => webhook.certificateStatus.is === 'kept', 'the certificate was checked');
    expect(await ask('GET', '/healthz')).toEqual({
      code: 200,
      text: expect.stringMatching(
        /^ok; the webhook keeps its current certificate, which expires on .*, because the new files cannot be used: .*: make sure that .*tls\.crt and .*tls\.key hold/,
      ) as string,
    });
    await authority.write(folder);
    await until(() => webhook.certificateStatus.is === 'good', 'the next one is in use');
    expect((await ask('GET', '/healthz')).text).toBe('ok\n');
  });

  it('keeps its certificate while the key of the next one is empty', async () => {
    await authority.write(folder);
    const key = readFileSync(join(folder, 'tls.key'));
    writeFileSync(join(folder, 'tls.key'), '');
    await until(() => webhook.certificateStatus.is === 'kept', 'the empty key was read');
    expect((await ask('GET', '/healthz')).code).toBe(200);
    writeFileSync(join(folder, 'tls.key'), key);
    await until(() => webhook.certificateStatus.is === 'good', 'the next one is in use');
    expect((await ask('GET', '/healthz')).text).toBe('ok\n');
  });
});

it('without a certificate, listens as soon as there is one, and says what is missing until then', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-webhook-'));
  const certificate = new Certificate(join(folder, 'tls.crt'), join(folder, 'tls.key'), SILENT, () => undefined);
  const webhook = await new Webhook({
    port: 0,
    certificate,
    desired: new DesiredState(),
    mayUse: () => Promise.resolve(true),
    logger: SILENT,
    lookMs: 20,
  }).start();
  try {
    expect([webhook.port, webhook.certificateStatus.is, webhook.certificateStatus.words]).toEqual([
      0,
      'unusable',
      expect.stringContaining('ENOENT'),
    ]);
    await (await testAuthority()).write(folder);
    await until(() => webhook.port > 0, 'it listens');
    expect(webhook.certificateStatus.is).toBe('good');
  } finally {
    await webhook.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

it('needs all of its settings or none', () => {
  const [cert, key] = [{ SLUICE_WEBHOOK_CERT_FILE: '/c' }, { SLUICE_WEBHOOK_KEY_FILE: '/k' }];
  expect(webhookFrom(settingsFrom({ ...cert, ...key }))).toBeUndefined();
  expect(webhookFrom(settingsFrom({ SLUICE_WEBHOOK_PORT: '9443', ...cert, ...key }))).toEqual({
    port: 9_443,
    certFile: '/c',
    keyFile: '/k',
  });
  expect(() => webhookFrom(settingsFrom({ SLUICE_WEBHOOK_PORT: '9443', ...cert }))).toThrow('SLUICE_WEBHOOK_KEY_FILE');
  for (const port of ['https', '-1', '65536', '1e3'])
    expect(() => webhookFrom(settingsFrom({ SLUICE_WEBHOOK_PORT: port, ...cert, ...key }))).toThrow(
      'must be a TCP port',
    );
});
