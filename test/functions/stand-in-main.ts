import { createServer } from 'node:http';
import { parseArgs } from 'node:util';
import { FunctionStandIn, type Troubles } from '../../cli/src/demo/functions/stand-in.js';
import { COLLECTIONS } from '../../cli/src/demo/functions/stand-in-schema.js';

/**
 * The stand-in as a process. A second port steers it: GET shows what it has, `POST /empty` empties it, and `POST
 * /troubles` with a part of Troubles as JSON changes those.
 */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: { port: { type: 'string' }, control: { type: 'string' }, password: { type: 'string' } },
  });
  const standIn = await FunctionStandIn.start({
    port: Number(values.port ?? 0),
    ...(values.password === undefined ? {} : { password: values.password }),
  });
  const control = createServer((incoming, response) => {
    const chunks: Buffer[] = [];
    incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
    incoming.on('end', () => {
      if (incoming.url === '/empty') standIn.empty();
      if (incoming.url === '/troubles')
        Object.assign(standIn.troubles, JSON.parse(Buffer.concat(chunks).toString()) as Partial<Troubles>);
      response.end(JSON.stringify(stateOf(standIn)));
    });
  });
  await new Promise<void>((resolve) => control.listen(Number(values.control ?? 0), '127.0.0.1', resolve));
  const { port } = control.address() as { readonly port: number };
  process.stdout.write(`${JSON.stringify({ baseUrl: standIn.baseUrl, control: `http://127.0.0.1:${port}` })}\n`);
}

const stateOf = ({ config, calls, services, logins, troubles }: FunctionStandIn): object => ({
  objects: Object.fromEntries(Object.keys(COLLECTIONS).map((path) => [path, config.list(path)])),
  kernel: config.kernel,
  calls,
  services,
  logins,
  troubles,
});

void main();
