/**
 * The names of one installation on NATS servers that several installations may share. The rest of
 * the program uses the names of `protocol/subjects.ts`. This module adds the prefix to them and
 * removes it again. Without a prefix, names stay unchanged. With the prefix `acme`: subject
 * `acme.journal.0.1`, stream `acme_JOURNAL_0`, bucket `acme_CONFIG` (stream `KV_acme_CONFIG`, keys
 * `$KV.acme_CONFIG.>`), inbox `acme._INBOX.gateway`.
 */
import { createInbox } from '@nats-io/transport-node'

export interface Namespace {
  /** The prefix; empty if none is configured. */
  readonly prefix: string
  /** Adds the prefix to a subject. */
  subject(plain: string): string
  /** Removes the prefix from a subject. */
  plain(subject: string): string
  /**
   * Adds the prefix to a stream name: of a journal (`JOURNAL_0`), a KV bucket (`KV_CONFIG`) or an
   * object store (`OBJ_BLOBS`).
   */
  stream(plain: string): string
  /** Removes the prefix from a stream name; undefined when the name does not have the prefix. */
  plainStream(stream: string): string | undefined
  /** Adds the prefix to the name of a KV bucket or object store. */
  bucket(plain: string): string
  /**
   * Returns the subject under which a KV bucket stores a key.
   * @param key a token, `*` or `>`.
   */
  storedKey(bucket: string, key: string): string
  /**
   * Returns the subject to which a value of the key is published. With a domain, this is a subject
   * of the JetStream API, because a leaf node with its own JetStream does not forward `$KV.>`. The
   * servers of the domain map it to the stored subject (nats-server, `generateJSMappingTable` in
   * server/jetstream_api.go).
   */
  publishedKey(bucket: string, key: string): string
  /** Prefix of the subjects of the JetStream API, without a trailing dot. */
  readonly api: string
  /**
   * Prefix of this client's reply subjects. It contains the client's roles, so that permissions can
   * keep other roles from reading the replies.
   */
  readonly inbox: string
  /** Whether a subject is a reply subject of any client of this installation. */
  isInbox(subject: string): boolean
  /** Returns a new, unique reply subject. */
  newInbox(): string
}

const STREAM_KIND = /^(KV_|OBJ_|)/

/**
 * Creates the namespace of one client.
 * @param role the client's roles joined by `-`, such as `gateway` or `shards-views`; part of its
 *   reply subjects.
 */
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
