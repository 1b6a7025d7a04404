import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { createGunzip } from 'node:zlib';

const NAME = 'app.git';
const WHO = ['-c', 'user.name=test', '-c', 'user.email=test@example.invalid'];

/** A real git repository over HTTP, on loopback, for fetching only. Flux speaks git's smart protocol only. */
export class GitServer {
  private readonly folder = mkdtempSync(join(tmpdir(), 'sluice-git-'));

  private constructor(private readonly server: Server) {
    const bare = join(this.folder, NAME);
    execFileSync('git', ['init', '-q', '--bare', '-b', 'main', bare]);
    execFileSync('git', ['init', '-q', '-b', 'main', join(this.folder, 'work')]);
  }

  static async start(): Promise<GitServer> {
    const server = createServer((request, response) => git.answer(request, response));
    const git = new GitServer(server);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return git;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/${NAME}`;
  }

  /** Pushes these files to the branch `main`. Returns the id of the commit. */
  commit(files: Readonly<Record<string, string>>): string {
    const work = join(this.folder, 'work');
    const git = (...args: readonly string[]): string =>
      execFileSync('git', ['-C', work, ...WHO, ...args], { encoding: 'utf8' }).trim();
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(dirname(join(work, path)), { recursive: true });
      writeFileSync(join(work, path), text);
    }
    git('add', '-A');
    git('commit', '-qm', 'test');
    git('push', '-q', join(this.folder, NAME), 'main');
    return git('rev-parse', 'HEAD');
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
    rmSync(this.folder, { recursive: true });
  }

  private answer(request: IncomingMessage, response: ServerResponse): void {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    const isListing = pathname === `/${NAME}/info/refs` && searchParams.get('service') === 'git-upload-pack';
    if (!isListing && pathname !== `/${NAME}/git-upload-pack`) return void response.writeHead(404).end();
    const protocol = String(request.headers['git-protocol'] ?? '');
    const more = isListing ? ['--advertise-refs'] : [];
    const git = spawn('git', ['upload-pack', '--stateless-rpc', ...more, join(this.folder, NAME)], {
      env: { PATH: process.env['PATH'], GIT_PROTOCOL: protocol, ...ANY_COMMIT },
    });
    const type = `application/x-git-upload-pack-${isListing ? 'advertisement' : 'result'}`;
    response.writeHead(200, { 'content-type': type, 'cache-control': 'no-cache' });
    if (isListing && !protocol.includes('version=2')) response.write('001e# service=git-upload-pack\n0000');
    const body = request.headers['content-encoding'] === 'gzip' ? request.pipe(createGunzip()) : request;
    body.pipe(git.stdin).on('error', () => undefined);
    git.stdout.pipe(response);
    git.stderr.resume();
  }
}

/** Flux fetches a commit by its id. */
const ANY_COMMIT = {
  GIT_CONFIG_COUNT: '1',
  GIT_CONFIG_KEY_0: 'uploadpack.allowAnySHA1InWant',
  GIT_CONFIG_VALUE_0: 'true',
};
