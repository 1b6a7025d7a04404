import { startNatsServer, type NatsServer } from './nats-server.js';

/** A temporary nats-server for the tests of one `describe`: started before the first test, ended after the last. */
export function natsFixture(): { readonly server: NatsServer } {
  let server: NatsServer | undefined;
  beforeAll(async () => {
    server = await startNatsServer();
  });
  afterAll(async () => {
    await server?.stop();
  });
  return {
    get server() {
      if (server === undefined) throw new Error('the server is there only while tests run');
      return server;
    },
  };
}
