/** Where the webhook listens, and with which certificate. */
export interface WebhookSettings {
  readonly port: number;
  readonly certFile: string;
  readonly keyFile: string;
}

/** SLUICE_WEBHOOK_PORT, and with it SLUICE_WEBHOOK_CERT_FILE and SLUICE_WEBHOOK_KEY_FILE; undefined where there shall be no webhook. Throws for what cannot be used. */
export function webhookFrom(environment: Readonly<Record<string, string | undefined>>): WebhookSettings | undefined {
  const text = environment['SLUICE_WEBHOOK_PORT'] ?? '';
  if (text === '') return undefined;
  const port = Number(text);
  if (!/^\d{1,5}$/.test(text) || port > 65_535)
    throw new Error(`SLUICE_WEBHOOK_PORT is ${JSON.stringify(text)}, and must be a TCP port`);
  const [certFile = '', keyFile = ''] = [
    environment['SLUICE_WEBHOOK_CERT_FILE'],
    environment['SLUICE_WEBHOOK_KEY_FILE'],
  ];
  if (certFile === '' || keyFile === '')
    throw new Error(
      'with SLUICE_WEBHOOK_PORT go SLUICE_WEBHOOK_CERT_FILE and SLUICE_WEBHOOK_KEY_FILE: an API server asks over TLS only',
    );
  return { port, certFile, keyFile };
}
