// Writes docs/schemas: JSON Schemas of the manifests and requests, for editors and other tools. The path of each
// follows from its $id.
const { cpSync, mkdirSync, rmSync, writeFileSync } = require('node:fs');
const { dirname, join } = require('node:path');
const { stringify } = require('yaml');
const {
  customResourceDefinitions,
  manifestSchemas,
  PLAIN_WEBHOOK,
  requestSchemas,
} = require('../dist/libs/manifests/src/index.js');

const folder = join(__dirname, '../docs/schemas');
rmSync(folder, { recursive: true, force: true });
for (const schema of Object.values({ ...manifestSchemas(), ...requestSchemas() })) {
  const file = join(folder, new URL(schema.$id).pathname.replace('/schemas/', ''));
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(schema, null, 2)}\n`);
}

// Writes deploy/crds: the same for Kubernetes.
const crds = join(__dirname, '../deploy/crds');
rmSync(crds, { recursive: true, force: true });
mkdirSync(crds, { recursive: true });
for (const [file, definition] of Object.entries(customResourceDefinitions()))
  writeFileSync(join(crds, file), stringify(definition, { aliasDuplicateObjects: false, lineWidth: 0 }));

// And the configuration of the webhook, to which users add the certificate of their authority (caBundle).
mkdirSync(join(__dirname, '../deploy/admission'), { recursive: true });
for (const file of ['../deploy/admission/webhook.yaml', '../deploy/helm/sluice/files/webhook.yaml'])
  writeFileSync(join(__dirname, file), stringify(PLAIN_WEBHOOK, { aliasDuplicateObjects: false, lineWidth: 0 }));
// And a copy for the chart, which cannot include files outside its folder.
const charted = join(__dirname, '../deploy/helm/sluice/files/crds');
rmSync(charted, { recursive: true, force: true });
cpSync(crds, charted, { recursive: true });
