import { parseArgs } from 'node:util';
import { connectNodeBus } from '#libs/bus';
import { createLogger } from '#libs/runtime';
import { commandWords, runApplier, runGuard, type GuardOrder } from './shell/index.js';

const { values } = parseArgs({
  options: {
    node: { type: 'string', default: process.env['SLUICE_NODE'] },
    label: { type: 'string', multiple: true, default: [] },
    root: { type: 'string', default: process.env['SLUICE_ROOT'] ?? '/' },
    state: { type: 'string', default: process.env['SLUICE_STATE'] ?? '/var/lib/sluice' },
    server: { type: 'string', default: process.env['NATS_URL'] ?? 'nats://127.0.0.1:4222' },
    creds: { type: 'string', default: process.env['NATS_CREDS'] },
    token: { type: 'string', default: process.env['SLUICE_TOKEN'] },
    fresh: { type: 'boolean', default: false },
    'allow-exec': { type: 'boolean', default: false },
    systemctl: { type: 'string', default: process.env['SLUICE_SYSTEMCTL'] },
    'systemd-analyze': { type: 'string', default: process.env['SLUICE_SYSTEMD_ANALYZE'] },
    'reboot-command': { type: 'string', default: process.env['SLUICE_REBOOT_COMMAND'] },
    netns: { type: 'string' },
    reach: { type: 'string', multiple: true, default: [] },
    guard: { type: 'string' },
    proc: { type: 'string', default: process.env['SLUICE_PROC'] },
    'update-grub': { type: 'string', default: process.env['SLUICE_UPDATE_GRUB'] },
  },
});

async function main(): Promise<void> {
  const { node, server, creds, token, netns, guard } = values;
  if (guard !== undefined) return void (await runGuard(JSON.parse(guard) as GuardOrder, createLogger('guard')));
  if (node === undefined) throw new TypeError('--node NAME is missing');
  const log = createLogger('applier');
  const applier = await runApplier({
    node,
    log,
    root: values.root,
    stateDir: values.state,
    fresh: values.fresh,
    allowExec: values['allow-exec'],
    host: {
      systemctl: values.systemctl,
      systemdAnalyze: values['systemd-analyze'],
      rebootCommand: commandWords(values['reboot-command']),
      proc: values.proc,
      updateGrub: commandWords(values['update-grub']),
    },
    labels: Object.fromEntries(
      values.label.map((text) => [text.split('=', 1)[0] ?? '', text.slice(text.indexOf('=') + 1)]),
    ),
    servers: server.split(','),
    reach: values.reach,
    guardCommand: [process.execPath, __filename, '--guard'],
    ...(netns === undefined ? {} : { network: { netns } }),
    bus: () => connectNodeBus({ node, servers: server, creds, token, name: `applier ${node}`, logger: log }),
  });
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void applier.stop().then(() => process.exit(0)));
}

main().catch((error: unknown) => {
  process.stderr.write(`applier: ${(error as Error).message}\n`);
  process.exitCode = error instanceof TypeError ? 2 : 1;
});
