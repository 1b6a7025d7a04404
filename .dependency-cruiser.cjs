// The floors of the house: a lower one never imports a higher one, and each may use only the packages named for it.
const FLOOR_0 = 'contracts|engine';
const DOMAIN = 'manifests|rules';
const FLOOR_2 = 'nats|client|nest|process|kube|api-servers';
/** Pure packages that the domain may use: no I/O, no clock, no state of their own. */
const DOMAIN_PACKAGES =
  '@marcbachmann/cel-js|class-validator|class-transformer|class-validator-jsonschema|reflect-metadata|canonicalize|ipaddr[.]js|leven|re2js|yaml';

const SPECS = '[.](spec|fixture)[.]ts$';
/** What only tests may import. Specs may use what their subject may not, but keep to the services' borders. */
const TEST_CODE = `^test/|${SPECS}|^libs/testing/|^services/[^/]+/src/testing/`;

/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    // ---- the floors ----
    {
      name: 'contracts-are-the-ground',
      severity: 'error',
      comment:
        'Everybody reads the contracts: whatever they import, everybody imports. They need the runtime of proto, and nothing else.',
      from: { path: '^libs/contracts/src/', pathNot: TEST_CODE },
      to: { pathNot: ['^libs/contracts/src/', 'node_modules/@bufbuild/protobuf/'] },
    },
    {
      name: 'engine-is-the-ground',
      severity: 'error',
      comment: 'The cycle of every service runs in production and in the simulation: it may know the contracts only.',
      from: { path: '^libs/engine/src/', pathNot: TEST_CODE },
      to: { pathNot: '^libs/(contracts|engine)/src/' },
    },
    {
      name: 'domain-is-pure',
      severity: 'error',
      comment:
        'The rules of the domain are the same in a core, in the CLI and offline: the floors below, each other, and a few pure packages; no built-in of Node.',
      from: { path: `^libs/(${DOMAIN})/src/`, pathNot: TEST_CODE },
      to: { pathNot: [`^libs/(${FLOOR_0}|${DOMAIN})/src/`, `node_modules/(${DOMAIN_PACKAGES})/`] },
    },
    {
      name: 'every-library-has-a-floor',
      severity: 'error',
      comment: 'A new library is given its floor in this file first, so that these rules hold for it too.',
      from: { path: '^libs/', pathNot: `^libs/(${FLOOR_0}|${DOMAIN}|${FLOOR_2}|testing)/` },
      to: {},
    },
    {
      name: 'libraries-do-not-see-their-users',
      severity: 'error',
      comment: 'A library that knows a service, the CLI or the tests is a part of them.',
      from: { path: '^libs/' },
      to: { path: '^(services|cli|test|bench)/' },
    },
    {
      name: 'libraries-by-their-door',
      severity: 'error',
      comment:
        'What index.ts exports is the promise of a library; all else may change without notice. (lean-start must come before all else, the door too; lean is a door to a part that loads quickly.)',
      from: { path: '^(libs/[^/]+|services/[^/]+|cli|test|bench)/' },
      to: { path: '^libs/[^/]+/(?!src/(index|lean|lean-start)[.]ts$)', pathNot: ['^$1/', SPECS] },
    },

    // ---- the services ----
    {
      name: 'services-are-islands',
      severity: 'error',
      comment: 'Services meet on the bus, never by import: any of them can be replaced by another program.',
      from: { path: '^services/([^/]+)/' },
      to: { path: '^(services|cli|test|bench)/', pathNot: '^services/$1/' },
    },
    {
      name: 'core-is-pure',
      severity: 'error',
      comment:
        'A core decides, and is run a million times in the simulation: no package, no built-in, no I/O; it asks its shell by way of needs.',
      from: { path: '^services/([^/]+)/src/core/', pathNot: TEST_CODE },
      to: { pathNot: ['^services/$1/src/core/', `^libs/(${FLOOR_0}|${DOMAIN})/src/`] },
    },
    {
      name: 'core-behind-its-shell',
      severity: 'error',
      comment: 'Only the shell carries out what a core decides; service.ts puts the two together.',
      from: { path: '^services/[^/]+/src/(?!core/|shell/|testing/|service[.]ts$)', pathNot: SPECS },
      to: { path: '^services/[^/]+/src/core/' },
    },
    {
      name: 'core-by-its-door',
      severity: 'error',
      comment: 'Shells and simulations see what core/index.ts shows: so the core can be rearranged.',
      from: { path: '^(services/[^/]+/src/(?!core/)|test/|bench/)' },
      to: { path: '^services/[^/]+/src/core/(?!index[.]ts$)' },
    },
    {
      name: 'cli-hosts-appliers-only',
      severity: 'error',
      comment: 'The CLI speaks with services over NATS, as any tool does. Only appliers run inside it, by their shell.',
      from: { path: '^cli/' },
      to: { path: '^services/', pathNot: '^services/applier/src/shell/' },
    },

    {
      name: 'applier-checks-no-manifests',
      severity: 'error',
      comment:
        'Nodes trust the services to have checked: validators and schemas are 450 modules, and cost each applier 13 MB.',
      from: { path: '^services/applier/src/', pathNot: TEST_CODE },
      to: { path: '^libs/manifests/src/(?!lean[.]ts$)' },
    },

    // ---- the outside ----
    {
      name: 'nats-behind-the-bus',
      severity: 'error',
      comment: 'One library knows NATS. It handles its many pitfalls, and tests them.',
      from: { path: '^(libs|services|cli|test|bench)/', pathNot: '^libs/(nats|client|nest)/' },
      to: { path: 'node_modules/@nats-io/' },
    },
    {
      name: 'kubernetes-behind-kube',
      severity: 'error',
      comment: 'One library knows Kubernetes; its client costs 1.4 s and 117 MB to load.',
      from: { path: '^(libs|services|cli|test|bench)/', pathNot: '^libs/kube/' },
      to: { path: 'node_modules/@kubernetes/' },
    },

    // ---- hygiene ----
    {
      name: 'no-circular',
      severity: 'error',
      comment: 'A cycle of values has no order of loading.',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } },
    },
    {
      name: 'no-circular-types',
      severity: 'error',
      comment:
        'A cycle in which a type closes the ring loads well, but has no reading order: move the type below both.',
      from: {},
      to: { circular: true },
    },
    {
      name: 'no-tests-in-sources',
      severity: 'error',
      comment: 'What runs in production does not load what only tests need.',
      from: { path: '^(libs|services|cli)/', pathNot: TEST_CODE },
      to: { path: TEST_CODE },
    },
    {
      name: 'no-dev-packages-in-sources',
      severity: 'error',
      comment: 'The image is made without devDependencies.',
      from: { path: '^(libs|services|cli)/', pathNot: TEST_CODE },
      to: { dependencyTypes: ['npm-dev'], dependencyTypesNot: ['type-only'] },
    },
    {
      name: 'only-declared-packages',
      severity: 'error',
      comment: 'A package that comes along with another may leave with it.',
      from: {},
      to: { dependencyTypes: ['npm-no-pkg', 'npm-unknown', 'unknown', 'undetermined'] },
    },
    {
      name: 'everything-resolves',
      severity: 'error',
      comment: 'An import that leads nowhere fails at run time.',
      from: {},
      to: { couldNotResolve: true },
    },
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^dist/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    webpackConfig: { fileName: require.resolve('./tools/source-alias.cjs') },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
