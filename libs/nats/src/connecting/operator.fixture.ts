import { randomUUID } from 'node:crypto';
import { nkeys } from '@nats-io/nats-core';

type KeyPair = ReturnType<typeof nkeys.createUser>;

/** A nats-server in operator mode, and what users of its one account with JetStream need. */
export interface TestOperator {
  /** Lines for the configuration of the server. */
  readonly config: string;
  /** A user with its seed, and as a credentials file. A bearer needs no seed. */
  user(options?: { readonly isBearer?: boolean }): {
    readonly jwt: string;
    readonly seed: string;
    readonly creds: string;
  };
}

const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);
const base64 = (value: string | Uint8Array): string => Buffer.from(value).toString('base64url');

/** The small part of `nsc` that tests need. */
export function testOperator(): TestOperator {
  const [operator, system, account] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount()];
  const accountJwt = (pair: KeyPair, limits: object): string =>
    signed(operator, pair, { type: 'account', limits: { ...ENDLESS, ...limits } });
  return {
    config: [
      `operator: "${signed(operator, operator, { type: 'operator' })}"`,
      `system_account: ${system.getPublicKey()}`,
      'resolver: MEMORY',
      'resolver_preload: {',
      `  ${system.getPublicKey()}: "${accountJwt(system, {})}"`,
      `  ${account.getPublicKey()}: "${accountJwt(account, JETSTREAM)}"`,
      '}',
    ].join('\n'),
    user({ isBearer = false } = {}) {
      const pair = nkeys.createUser();
      const jwt = signed(account, pair, { type: 'user', subs: -1, data: -1, payload: -1, bearer_token: isBearer });
      const seed = text(pair.getSeed());
      return { jwt, seed, creds: `${block('NATS USER JWT', jwt)}\n${block('USER NKEY SEED', seed)}` };
    },
  };
}

const ENDLESS = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 };
const JETSTREAM = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };

function signed(issuer: KeyPair, subject: KeyPair, nats: object): string {
  const claims = {
    jti: randomUUID(),
    iat: Math.floor(Date.now() / 1_000),
    iss: issuer.getPublicKey(),
    sub: subject.getPublicKey(),
    name: 'test',
    nats: { ...nats, version: 2 },
  };
  const body = `${base64(JSON.stringify({ typ: 'JWT', alg: 'ed25519-nkey' }))}.${base64(JSON.stringify(claims))}`;
  return `${body}.${base64(issuer.sign(new TextEncoder().encode(body)))}`;
}

const block = (name: string, content: string): string =>
  `-----BEGIN ${name}-----\n${content}\n------END ${name}------\n`;
