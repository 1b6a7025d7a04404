import {
  FACT_TYPES,
  FACTS,
  SERVICES,
  VIEW_BUCKETS,
  VIEWS,
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

/**
 * Every fact that a core emits, read from its source. Throws if a type cannot be read, because then this test would
 * miss it.
 */
function emissionsOf(service: ServiceName, sources: readonly Source[]): readonly Emission[] {
  const emissions: Emission[] = [];
  const note = (source: Source, node: ts.Node, types: readonly string[] | undefined): void => {
    if (types === undefined)
      throw new Error(`${placeOf(source, node)}: the type of the fact cannot be read; write it as a literal`);
    for (const type of types) emissions.push({ service, type, place: placeOf(source, node) });
  };
  for (const { source, call, args } of callsOf(sources, 'emit')) {
    const type = propertyOf(args[0], 'type');
    // the body of emitRollout, whose calls are read below
    if (type !== undefined && isTemplateOfRollout(type)) continue;
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
  const foreign = EMISSIONS.filter(({ service, type }) => !(FACTS[type as FactType]?.owners ?? []).includes(service));
  expect(foreign).toEqual([]);
});

test('every owned fact is emitted by each of its owners', () => {
  const owned = FACT_TYPES.flatMap((type) => FACTS[type].owners.map((service) => `${service} ${type}`));
  const emitted = new Set(EMISSIONS.map(({ service, type }) => `${service} ${type}`));
  const missing = owned.filter((one) => !emitted.has(one));
  expect(missing).toEqual([]);
});

test('only facts that people append have no owner', () => {
  expect(FACT_TYPES.filter((type) => FACTS[type].owners.length === 0)).toEqual(['ledger.upgraded', 'ledger.voided']);
});

test('two services share config.rejected, and distinguish its stages', () => {
  expect(FACT_TYPES.filter((type) => FACTS[type].owners.length > 1)).toEqual(['config.rejected']);
  const stages = [...CORES].flatMap(([service, sources]) =>
    callsOf(sources, 'emit')
      .filter(({ args }) => textsOf(propertyOf(args[0], 'type'))?.[0] === 'config.rejected')
      .map(({ args }) => `${service} ${textsOf(propertyOf(args[0], 'stage'))?.join() ?? '?'}`),
  );
  expect([...new Set(stages)].sort()).toEqual(['merger schema', 'validator review']);
});

describe('every view has one writer', () => {
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
      keys.filter(({ service, buckets }) => buckets?.some((bucket) => VIEWS[bucket as ViewBucket]?.owner !== service)),
    ).toEqual([]);
  });

  test('every view is touched by its owner', () => {
    const touched = new Set(
      keys.flatMap(({ service, buckets }) => (buckets ?? []).map((bucket) => `${service} ${bucket}`)),
    );
    expect(VIEW_BUCKETS.filter((bucket) => !touched.has(`${VIEWS[bucket].owner} ${bucket}`))).toEqual([]);
  });
});

test('a core reads every fact that its code names, and has a fold for each', () => {
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

/** The facts in the tables of a fold: `const FACTS: FactTable<State> = { 'node.joined': … }`. */
function readsOf(sources: readonly Source[]): readonly string[] {
  const texts: string[] = [];
  for (const { tree } of sources) {
    const visit = (node: ts.Node): void => {
      if (
        ts.isVariableDeclaration(node) &&
        node.type?.getText().startsWith('FactTable<') === true &&
        node.initializer !== undefined &&
        ts.isObjectLiteralExpression(node.initializer)
      ) {
        for (const { name } of node.initializer.properties)
          if (name !== undefined && ts.isStringLiteralLike(name)) texts.push(name.text);
      }
      ts.forEachChild(node, visit);
    };
    visit(tree);
  }
  return texts;
}
