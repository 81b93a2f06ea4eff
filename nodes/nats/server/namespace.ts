/**
 * The names of one installation on servers that several share. The rest of the program speaks the grammar of
 * `protocol/subjects.ts`; this boundary puts the prefix before it and takes it off again. Without a prefix, names are as they
 * were before prefixes existed, so existing stores stay valid. With the prefix `acme`: subject `acme.journal.0.1`, stream
 * `acme_JOURNAL_0`, bucket `acme_CONFIG` (stream `KV_acme_CONFIG`, keys `$KV.acme_CONFIG.>`), inbox `acme._INBOX.gateway`.
 */
import { createInbox } from '@nats-io/transport-node'

export interface Namespace {
  /** Empty when there is none. */
  readonly prefix: string
  /** The subject on the servers. */
  subject(plain: string): string
  /** The subject as the program knows it. */
  plain(subject: string): string
  /** The stream on the servers: of a journal (`JOURNAL_0`), a KV bucket (`KV_CONFIG`) or an object store (`OBJ_BLOBS`). */
  stream(plain: string): string
  /** The stream as the program knows it; undefined when it is not of this installation. */
  plainStream(stream: string): string | undefined
  /** The name of a KV bucket or object store on the servers. */
  bucket(plain: string): string
  /** The subject that a key of a KV bucket is stored under. @param key as a token, or `*`, or `>`. */
  storedKey(bucket: string, key: string): string
  /**
   * The subject that a value of this key is published to. With a domain it is one of the API, because a leaf node that has
   * JetStream itself does not pass `$KV.>` on; the servers of the domain map it to the stored subject (nats-server,
   * `generateJSMappingTable` in server/jetstream_api.go).
   */
  publishedKey(bucket: string, key: string): string
  /** What subjects of the JetStream API begin with, without a dot at the end. */
  readonly api: string
  /** What subjects of answers begin with, so that no other role can be allowed to read them. */
  readonly inbox: string
  /** Whether answers to some client of this installation, of whatever role, come to a subject. */
  isInbox(subject: string): boolean
  /** A subject for answers that is used once. */
  newInbox(): string
}

const STREAM_KIND = /^(KV_|OBJ_|)/

/** @param role what distinguishes the answers to this client: its roles, such as `gateway` or `shards-views`. */
export function createNamespace(
  { prefix = '', domain }: { readonly prefix?: string; readonly domain?: string },
  role: string,
): Namespace {
  const [dotted, joined] = prefix === '' ? ['', ''] : [`${prefix}.`, `${prefix}_`]
  const inbox = `${dotted}_INBOX.${role}`
  const api = domain === undefined ? '$JS.API' : `$JS.${domain}.API`
  const storedKey = (bucket: string, key: string) => `$KV.${joined}${bucket}.${key}`
  return {
    prefix,
    subject: (plain) => dotted + plain,
    plain: (subject) => subject.slice(dotted.length),
    stream: (plain) => plain.replace(STREAM_KIND, `$1${joined}`),
    plainStream: (stream) => {
      const kind = STREAM_KIND.exec(stream)?.[0] ?? ''
      return stream.startsWith(kind + joined)
        ? kind + stream.slice(kind.length + joined.length)
        : undefined
    },
    bucket: (plain) => joined + plain,
    storedKey,
    publishedKey: (bucket, key) =>
      domain === undefined ? storedKey(bucket, key) : `${api}.${storedKey(bucket, key)}`,
    api,
    inbox,
    isInbox: (subject) => subject.startsWith(`${dotted}_INBOX.`),
    newInbox: () => createInbox(inbox),
  }
}
