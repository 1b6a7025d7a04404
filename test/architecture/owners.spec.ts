import {
  FACT_TYPES,
  OWNERS,
  SERVICES,
  VIEW_BUCKETS,
  VIEW_OWNERS,
  type FactType,
  type ServiceName,
  type ViewBucket,
} from '#libs/contracts';
import ts from 'typescript';
import { callsOf, placeOf, propertyOf, sourcesBelow, textsOf, type Source } from './sources.fixture.js';

const CORES = new Map(SERVICES.map((service) => [service, sourcesBelow(`services/${service}/src/core`)]));
interface Emission {
  readonly service: ServiceName;
  readonly type: string;
  readonly place: string;
}

/** Every fact that a core emits, read from its source. Throws where a type cannot be read: then this test is blind. */
function emissionsOf(service: ServiceName, sources: readonly Source[]): readonly Emission[] {
  const emissions: Emission[] = [];
  const note = (source: Source, node: ts.Node, types: readonly string[] | undefined): void => {
    if (types === undefined)
      throw new Error(`${placeOf(source, node)}: the type of the fact cannot be read; write it as a literal`);
    for (const type of types) emissions.push({ service, type, place: placeOf(source, node) });
  };
  for (const { source, call, args } of callsOf(sources, 'emit')) {
    const type = propertyOf(args[0], 'type');
    if (type !== undefined && isTemplateOfRollout(type)) continue; // the body of emitRollout, whose calls are read below
    note(source, call, textsOf(type));
  }
  for (const { source, call, args } of callsOf(sources, 'emitRollout'))
    note(
      source,
      call,
      textsOf(args[1])?.map((state) => `rollout.${state}`),
    );
  return emissions;
}

const isTemplateOfRollout = (type: ts.Expression): boolean =>
  ts.isTemplateExpression(type) && type.head.text === 'rollout.';

const EMISSIONS = [...CORES].flatMap(([service, sources]) => emissionsOf(service, sources));

test('a core emits only the facts that it owns', () => {
  const foreign = EMISSIONS.filter(({ service, type }) => !(OWNERS[type as FactType] ?? []).includes(service));
  expect(foreign).toEqual([]);
});

test('every fact that is owned is emitted by each of its owners', () => {
  const owned = FACT_TYPES.flatMap((type) => OWNERS[type].map((service) => `${service} ${type}`));
  const emitted = new Set(EMISSIONS.map(({ service, type }) => `${service} ${type}`));
  const missing = owned.filter((one) => !emitted.has(one));
  expect(missing).toEqual([]);
});

test('only what a person may append has no owner', () => {
  expect(FACT_TYPES.filter((type) => OWNERS[type].length === 0)).toEqual(['ledger.raised', 'ledger.voided']);
});

test('two services share config.rejected, and tell its stages apart', () => {
  expect(FACT_TYPES.filter((type) => OWNERS[type].length > 1)).toEqual(['config.rejected']);
  const stages = [...CORES].flatMap(([service, sources]) =>
    callsOf(sources, 'emit')
      .filter(({ args }) => textsOf(propertyOf(args[0], 'type'))?.[0] === 'config.rejected')
      .map(({ args }) => `${service} ${textsOf(propertyOf(args[0], 'stage'))?.join() ?? '?'}`),
  );
  expect([...new Set(stages)].sort()).toEqual(['merger form', 'validator review']);
});

describe('one writer per view', () => {
  const keys = [...CORES].flatMap(([service, sources]) =>
    callsOf(sources, 'viewKey').map(({ source, call, args }) => ({
      service,
      buckets: textsOf(args[0]),
      place: placeOf(source, call),
    })),
  );

  test('each place names its bucket', () => {
    expect(keys.filter(({ buckets }) => buckets === undefined)).toEqual([]);
  });

  test('a core touches only the views that it owns', () => {
    expect(
      keys.filter(({ service, buckets }) => buckets?.some((bucket) => VIEW_OWNERS[bucket as ViewBucket] !== service)),
    ).toEqual([]);
  });

  test('every view is touched by its owner', () => {
    const touched = new Set(
      keys.flatMap(({ service, buckets }) => (buckets ?? []).map((bucket) => `${service} ${bucket}`)),
    );
    expect(VIEW_BUCKETS.filter((bucket) => !touched.has(`${VIEW_OWNERS[bucket]} ${bucket}`))).toEqual([]);
  });
});

test('a core reads every fact that its fold has a case for, and has a case for what it reads', () => {
  for (const [service, sources] of CORES) {
    const mentioned = new Set<string>();
    for (const { tree } of sources) {
      const visit = (node: ts.Node): void => {
        if (ts.isCaseClause(node) && ts.isStringLiteralLike(node.expression)) mentioned.add(node.expression.text);
        if (ts.isPropertyAssignment(node) && ts.isStringLiteralLike(node.name)) mentioned.add(node.name.text);
        if (ts.isBinaryExpression(node) && ts.isStringLiteralLike(node.right) && /\btype$/.test(node.left.getText()))
          mentioned.add(node.right.text);
        ts.forEachChild(node, visit);
      };
      visit(tree);
    }
    const folded = FACT_TYPES.filter((type) => mentioned.has(type));
    const reads = readsOf(sources);
    expect({ service, facts: [...folded].sort() }).toEqual({ service, facts: [...reads].sort() });
  }
});

/** The literals of `READS`. */
function readsOf(sources: readonly Source[]): readonly string[] {
  const texts: string[] = [];
  for (const { tree } of sources) {
    const visit = (node: ts.Node): void => {
      if (
        ts.isVariableDeclaration(node) &&
        node.name.getText() === 'READS' &&
        node.initializer !== undefined &&
        ts.isArrayLiteralExpression(node.initializer)
      ) {
        for (const element of node.initializer.elements) texts.push(...(textsOf(element) ?? []));
      }
      ts.forEachChild(node, visit);
    };
    visit(tree);
  }
  return texts;
}
