/** Certificates for tests. The program openssl creates them, because node:crypto cannot. */
import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** The paths of a certificate and of its private key, both in PEM format. */
interface Certified {
  readonly cert: string
  readonly key: string
}
export interface Authority {
  /** The path of the authority's certificate. */
  readonly ca: string
  /** Issues a certificate for 127.0.0.1 and localhost. Servers and clients can use it. */
  issue(commonName: string): Certified
}

/**
 * Returns the reason why no certificates can be created on this machine, or undefined if they can
 * be created.
 */
export function whyNoCertificates(): string | undefined {
  const tried = spawnSync('openssl', ['version'], { encoding: 'utf8' })
  return tried.status === 0
    ? undefined
    : 'openssl is not installed: TLS to NATS is NOT TESTED on this machine'
}

/** Creates an authority, which stores its files in this folder. */
export function createAuthority(folder: string, name: string): Authority {
  mkdirSync(folder, { recursive: true })
  const at = (file: string) => join(folder, file)
  const openssl = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' })
  const newKey = (file: string) =>
    openssl('ecparam', '-name', 'prime256v1', '-genkey', '-noout', '-out', file)
  const [ca, caKey] = [at('ca.pem'), at('ca.key')]
  newKey(caKey)
  openssl('req', '-x509', '-new', '-key', caKey, '-days', '2', '-subj', `/CN=${name}`, '-out', ca)
  return {
    ca,
    issue: (commonName) => {
      const [cert, key] = [at(`${commonName}.pem`), at(`${commonName}.key`)]
      const [request, extensions] = [at(`${commonName}.csr`), at(`${commonName}.ext`)]
      newKey(key)
      openssl('req', '-new', '-key', key, '-subj', `/CN=${commonName}`, '-out', request)
      writeFileSync(
        extensions,
        'subjectAltName=IP:127.0.0.1,DNS:localhost\nextendedKeyUsage=serverAuth,clientAuth\n',
      )
      const signed = ['-CA', ca, '-CAkey', caKey, '-CAcreateserial', '-days', '2']
      openssl('x509', '-req', '-in', request, ...signed, '-extfile', extensions, '-out', cert)
      return { cert, key }
    },
  }
}
