import { copyFileSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { ROOT, runTool } from './tools.fixture.js';

interface Violation {
  readonly from: string;
  readonly to: string;
  readonly rule: { readonly name: string; readonly severity: string };
}

const FOLDERS = ['libs', 'services', 'cli', 'test'];

function violations(cwd: string): readonly Violation[] {
  const { stdout, stderr } = runTool(
    'dependency-cruiser/bin/dependency-cruise.mjs',
    ['--config', join(ROOT, '.dependency-cruiser.cjs'), '--output-type', 'json', ...FOLDERS],
    cwd,
  );
  if (stdout === '') throw new Error(stderr);
  return (JSON.parse(stdout) as { summary: { violations: Violation[] } }).summary.violations;
}

test('no folder imports one that is above it', () => {
  const errors = violations(ROOT).filter(({ rule }) => rule.severity === 'error');
  expect(errors.map(({ from, to, rule }) => `${rule.name}: ${from} -> ${to}`)).toEqual([]);
});

describe('each rule reports a violation', () => {
  /** The rule, the file that breaks it, and the code that does. */
  const PLANTED: readonly (readonly [rule: string, file: string, text: string])[] = [
    ['contracts-are-the-ground', 'libs/contracts/src/planted.ts', `import '#libs/engine';`],
    ['contracts-are-the-ground', 'libs/contracts/src/planted-npm.ts', `import 'yaml';`],
    ['engine-is-the-ground', 'libs/engine/src/planted.ts', `import 'node:fs';`],
    ['engine-is-the-ground', 'libs/engine/src/planted-up.ts', `import '#libs/manifests';`],
    [
      'domain-is-pure',
      'libs/manifests/src/planted.ts',
      `import { createHash } from 'node:crypto';\nexport { createHash };`,
    ],
    ['domain-is-pure', 'libs/rules/src/planted.ts', `import type { Bus } from '#libs/nats';\nexport type B = Bus;`],
    ['domain-is-pure', 'libs/rules/src/planted.ts', `import 'rxjs';`],
    ['every-library-has-a-floor', 'libs/novelty/src/index.ts', `import '#libs/contracts';`],
    [
      'libraries-do-not-see-their-users',
      'libs/nats/src/planted-up.ts',
      `import '../../../services/merger/src/shell/index.js';`,
    ],
    ['libraries-do-not-see-their-users', 'libs/process/src/planted-up.ts', `import '../../../cli/src/main.js';`],
    [
      'libraries-by-their-door',
      'services/merger/src/shell/back-window.ts',
      `import '../../../../libs/nats/src/planted.js';`,
    ],
    ['libraries-by-their-door', 'libs/process/src/back-window.ts', `import '../../nats/src/planted.js';`],
    ['services-are-islands', 'services/drain/src/shell/planted.ts', `import '../../../merger/src/shell/index.js';`],
    ['services-are-islands', 'services/drain/src/core/planted.spec.ts', `import '../../../merger/src/core/index.js';`],
    ['core-is-pure', 'services/merger/src/core/planted.ts', `import 'node:timers';`],
    ['core-is-pure', 'services/merger/src/core/planted-bus.ts', `import '#libs/nats';`],
    ['core-is-pure', 'services/merger/src/core/planted-shell.ts', `import '../shell/index.js';`],
    ['core-is-pure', 'services/merger/src/core/planted-npm.ts', `import 'yaml';`],
    ['core-behind-its-shell', 'services/merger/src/main.ts', `import './core/index.js';`],
    ['core-by-its-door', 'services/merger/src/shell/planted.ts', `import '../core/planted.js';`],
    ['cli-hosts-appliers-only', 'cli/src/planted.ts', `import '../../services/merger/src/shell/index.js';`],
    ['cli-hosts-appliers-only', 'cli/src/planted-core.ts', `import '../../services/applier/src/core/index.js';`],
    ['applier-checks-no-manifests', 'services/applier/src/shell/planted.ts', `import '#libs/manifests';`],
    ['nats-behind-the-bus', 'cli/src/planted-nats.ts', `import '@nats-io/transport-node';`],
    [
      'nats-behind-the-bus',
      'services/merger/src/shell/planted-nats.ts',
      `import type { KV } from '@nats-io/kv';\nexport type K = KV;`,
    ],
    ['no-circular', 'libs/process/src/ring-a.ts', `import { b } from './ring-b.js';\nexport const a = () => b;`],
    ['no-tests-in-sources', 'libs/process/src/planted.ts', `import './planted.fixture.js';`],
    ['no-tests-in-sources', 'libs/process/src/planted.ts', `import '#libs/testing';`],
    [
      'no-dev-packages-in-sources',
      'libs/process/src/planted-dev.ts',
      `import fc from 'fast-check';\nexport const x = fc;`,
    ],
    ['only-declared-packages', 'libs/process/src/planted-undeclared.ts', `import 'picomatch';`],
    ['everything-resolves', 'libs/process/src/planted-nowhere.ts', `import './nowhere.js';`],
  ];
  const INNOCENT: Readonly<Record<string, string>> = {
    'libs/process/src/ring-b.ts': `import { a } from './ring-a.js';\nexport const b = () => a;`,
    'libs/process/src/planted.fixture.ts': '',
    'libs/nats/src/planted.ts': `import '@nats-io/nats-core';\nexport type Bus = 1;`,
    'services/merger/src/shell/index.ts': `import '../core/index.js';`,
    'services/merger/src/core/index.ts': `import '#libs/engine';\nimport '#libs/manifests';`,
    'services/merger/src/core/innocent.spec.ts': `import 'node:crypto';\nimport 'fast-check';`,
    'services/applier/src/shell/index.ts': '',
    'services/applier/src/core/index.ts': '',
    'cli/src/main.ts': `import '../../services/applier/src/shell/index.js';`,
    'test/simulation/innocent.ts': `import '../../services/merger/src/core/index.js';\nimport '#libs/testing';`,
  };

  let tree: string;
  let found: readonly Violation[];
  beforeAll(() => {
    tree = realpathSync(mkdtempSync(join(tmpdir(), 'sluice-floors-')));
    for (const file of ['package.json', 'tsconfig.json']) copyFileSync(join(ROOT, file), join(tree, file));
    symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
    for (const lib of ['contracts', 'engine', 'manifests', 'nats', 'testing'])
      write(`libs/${lib}/src/index.ts`, lib === 'nats' ? `export * from './planted.js';` : '');
    for (const [file, text] of Object.entries(INNOCENT)) write(file, text);
    for (const [, file, text] of PLANTED) write(file, text);
    found = violations(tree);
  });
  afterAll(() => rmSync(tree, { recursive: true }));

  function write(file: string, text: string): void {
    mkdirSync(dirname(join(tree, file)), { recursive: true });
    writeFileSync(join(tree, file), text);
  }

  test.each(PLANTED)('%s: %s', (rule, file) => {
    expect(found.filter(({ from }) => from === file).map((one) => one.rule.name)).toContain(rule);
  });

  test('what is allowed is not reported', () => {
    const guilty = new Set(PLANTED.map(([, file]) => file));
    expect(found.filter(({ from }) => !guilty.has(from) && from !== 'libs/process/src/ring-b.ts')).toEqual([]);
  });
});
