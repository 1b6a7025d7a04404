import { OBJECTS, objectSubject } from '#libs/contracts';
import { SILENT } from '#libs/process';
import { natsFixture } from '#libs/testing';
import { connectBus } from './connection.js';
import { RequestEndpoints } from './request-endpoints.js';

const nats = natsFixture();

test('a request that needs a missing stream names it, and says what to do', async () => {
  const bus = await connectBus({ servers: nats.server.url, name: 'spec' });
  const handle = () => bus.stored(OBJECTS, { last_by_subj: objectSubject('a'.repeat(64), 'info') });
  const options = { bus, name: 'spec', version: '0.1.0', description: '', logger: SILENT };
  const endpoints = new RequestEndpoints({ ...options, handlers: new Map([['ops.spec', handle]]) });
  try {
    await endpoints.show({ leading: true, halted: '', answers: true, notes: [] });
    const answer = await bus.request('ops.spec', '{}');
    expect(answer.json()).toEqual({
      error: {
        code: 'unavailable',
        message: 'NATS has no stream OBJECTS: restart the services, which create it when they start',
      },
    });
  } finally {
    await endpoints.close();
    await bus.close();
  }
});
