import 'reflect-metadata';
import { webcrypto } from 'node:crypto';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** A certificate authority for tests. It signs certificates for 127.0.0.1, or for a name. */
export interface TestAuthority {
  /** The certificate to trust. */
  readonly ca: string;
  /** Writes a certificate and its key into a folder, replacing existing ones. Both times are in ms from now. */
  write(
    folder: string,
    options?: { readonly fromMs?: number; readonly toMs?: number; readonly dnsName?: string },
  ): Promise<{ readonly certFile: string; readonly keyFile: string }>;
}

const HOUR_MS = 3_600_000;
const YEAR_MS = 365 * 24 * HOUR_MS;
const ALGORITHM = { name: 'ECDSA', namedCurve: 'P-256', hash: 'SHA-256' } as const;

/** Creates an authority that nothing else trusts. */
export async function testAuthority(): Promise<TestAuthority> {
  const x509 = await import('@peculiar/x509');
  x509.cryptoProvider.set(webcrypto as never);
  const keys = (): Promise<webcrypto.CryptoKeyPair> =>
    webcrypto.subtle.generateKey(ALGORITHM, true, ['sign', 'verify']);
  const own = await keys();
  const root = await x509.X509CertificateGenerator.createSelfSigned({
    name: 'CN=a test',
    keys: own,
    signingAlgorithm: ALGORITHM,
    serialNumber: '01',
    notBefore: new Date(Date.now() - YEAR_MS),
    notAfter: new Date(Date.now() + YEAR_MS),
    extensions: [new x509.BasicConstraintsExtension(true)],
  });
  let serial = 1;
  return {
    ca: root.toString('pem'),
    async write(folder, { fromMs = -HOUR_MS, toMs = YEAR_MS / 2, dnsName } = {}) {
      const pair = await keys();
      const certificate = await x509.X509CertificateGenerator.create({
        issuer: root.subject,
        subject: 'CN=webhook',
        publicKey: pair.publicKey,
        signingKey: own.privateKey,
        signingAlgorithm: ALGORITHM,
        serialNumber: `0${(serial += 1)}`,
        notBefore: new Date(Date.now() + fromMs),
        notAfter: new Date(Date.now() + toMs),
        extensions: [
          new x509.SubjectAlternativeNameExtension([
            dnsName === undefined ? { type: 'ip', value: '127.0.0.1' } : { type: 'dns', value: dnsName },
          ]),
        ],
      });
      const [certFile, keyFile] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
      await writeFile(certFile, certificate.toString('pem'));
      await writeFile(
        keyFile,
        x509.PemConverter.encode(await webcrypto.subtle.exportKey('pkcs8', pair.privateKey), 'PRIVATE KEY'),
        { mode: 0o600 },
      );
      return { certFile, keyFile };
    },
  };
}
