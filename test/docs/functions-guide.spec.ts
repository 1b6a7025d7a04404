import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findKubectl, whyNoKubectl } from '#libs/api-servers';
import { describeOnClusters, testAuthority, type LeanCluster } from '#libs/testing';
import { FunctionStandIn } from '../../cli/src/demo/functions/stand-in.js';
import { Guide, GuideReader, writeKubeconfig } from './guide.js';

const guide = new Guide('docs/guides/network-functions.md');
const PASSWORD = 'secret';
/** The addresses in the page, and the replicas at them. */
const IN_FILE = { 'https://10.0.0.7': 'cnf-1', 'https://10.0.0.8': 'cnf-2' };
const PODS = ['cnf-a', 'cnf-b'];
const NAMESPACE = '/api/v1/namespaces/sdewan';

const why = whyNoKubectl();
// The tests are the steps of a reader: each needs those before it.
if (why !== undefined) test.skip(`the guide of network functions (${why})`, () => undefined);
else
  describeOnClusters('the guide of network functions', 1, (lean) => {
    const reader = new GuideReader();
    const blocks = [...guide.blocks];
    const standIns = new Map<string, FunctionStandIn>();
    beforeAll(async () => {
      await reader.settle({ kubectl: await findKubectl() });
      const [cluster] = lean() as [LeanCluster];
      writeKubeconfig(reader, new Map([['cluster', cluster]]), 'cluster');
      await listReplicas();
      await runPods(cluster);
    }, 20 * 60_000);
    afterAll(async () => {
      await reader.leave();
      for (const standIn of standIns.values()) await standIn.close();
    });

    async function startReplica(name: string, dnsName?: string): Promise<string> {
      const [cert, key] = ['tls.crt', 'tls.key'].map((file) => readFileSync(join(reader.home, file), 'utf8'));
      const tls = { cert: cert as string, key: key as string };
      const standIn = await FunctionStandIn.start({ password: PASSWORD, tls });
      standIns.set(dnsName === undefined ? name : `${name}.sdewan`, standIn);
      return new URL(standIn.baseUrl).origin;
    }

    /** Two replicas at addresses, in the file of the page. */
    async function listReplicas(): Promise<void> {
      const authority = await testAuthority();
      await authority.write(reader.home);
      writeFileSync(join(reader.home, 'ca.pem'), authority.ca);
      let file = guide.file('functions.yaml');
      for (const [address, name] of Object.entries(IN_FILE)) {
        expect(file).toContain(address);
        file = file.replace(address, await startReplica(name));
        writeFileSync(join(reader.home, `${name}.password`), `${PASSWORD}\n`, { mode: 0o600 });
      }
      writeFileSync(join(reader.home, 'functions.yaml'), file);
    }

    /** Two replicas in pods. What a kubelet would do is done here. */
    async function runPods({ api }: LeanCluster): Promise<void> {
      const dnsName = '127-0-0-1.sdewan.pod.cluster.local';
      const authority = await testAuthority();
      await authority.write(reader.home, { dnsName });
      await api.create('/api/v1/namespaces', { metadata: { name: 'sdewan' } });
      for (const [name, stringData] of Object.entries({
        account: { password: PASSWORD },
        cert: { 'ca.crt': authority.ca },
      }))
        await api.create(`${NAMESPACE}/secrets`, { metadata: { name }, stringData });
      const labels = { sdewanPurpose: 'edge', 'cnf-account-secret': 'account', 'cnf-cert-secret': 'cert' };
      for (const name of PODS) {
        const annotations = { 'sluice.dev/port': new URL(await startReplica(name, dnsName)).port };
        const metadata = { name, labels, annotations };
        await api.create(`${NAMESPACE}/pods`, { metadata, spec: { containers: [{ name: 'c', image: 'x' }] } });
        const conditions = [{ type: 'Ready', status: 'True' }];
        const status = { phase: 'Running', podIP: '127.0.0.1', podIPs: [{ ip: '127.0.0.1' }], conditions };
        await api.patch(`${NAMESPACE}/pods/${name}/status`, { status }, 'kubelet');
      }
    }

    /** Runs the next block, which contains these words. */
    async function next(words: string): Promise<string> {
      const block = blocks.shift() ?? '';
      expect(block).toContain(words);
      return reader.runBlock(block);
    }

    test('the control plane starts', () => next('sluice up'));

    test('an applier finds the replicas in pods', async () => {
      await next('deploy/targets/functions-in-pods.yaml');
      await reader.areReady(...PODS.map((name) => `${name}.sdewan`));
    });

    test('another applier finds those in a file', async () => {
      await next('sluice applier --targets functions --inventory functions.yaml');
      await reader.areReady(...Object.values(IN_FILE));
    });

    test('a change is planned, and rolls out to four replicas', async () => {
      const output = await next('sluice get nodes');
      for (const name of standIns.keys()) expect(output).toMatch(new RegExp(`^${name} +.*ready`, 'm'));
      expect(output).toMatch(/committed .*4\/4 applied/);
      for (const { config } of standIns.values())
        expect([config.list('mwan3/v1/policies'), config.list('mwan3/v1/rules')]).toMatchObject([
          [{ name: 'balanced', members: [{ interface: 'wan1' }, { interface: 'wan2' }] }],
          [{ name: 'https', policy: 'balanced', dest_port: '443' }],
        ]);
    });

    test('what the replicas say is shown', async () => {
      const output = await next('sluice get target-status');
      for (const name of standIns.keys()) expect(output).toContain(name);
      expect(output).toContain('{"name":"ipsec","status":{"InitConnection":"success"');
    });

    test('the commands after that succeed too', async () => {
      for (const block of blocks.splice(0)) await reader.runBlock(block);
    });
  });
