/**
 * Inbound e-mail: an SMTP server that accepts messages for agents' addresses and publishes each
 * message as an `email.received` event.
 *
 * Invariants:
 * M1. A message is acknowledged (250) only after its event is committed for every recipient. A
 *     temporary failure is answered with 451, and the sender retries. A retry does not publish the
 *     event twice, because events are deduplicated by message and agent.
 * M2. Only the addresses of active agents are accepted. The listener relays nothing and sends no
 *     e-mail.
 * M3. The size of a message, the size of all messages in memory, the number of recipients, the
 *     number of connections, their duration and their idle time are bounded. Messages are parsed in
 *     other threads (`reader.ts`).
 */
import { createHash } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Readable } from 'node:stream'
import { domainToASCII } from 'node:url'
import { SMTPServer, type SMTPServerSession } from 'smtp-server'
import { publishEvent } from '../../gateway/commands/publish-idempotently.ts'
import { createSemaphore, type Semaphore } from '../../gateway/files/semaphore.ts'
import type { World } from '../../gateway/ports.ts'
import { limitedAddress } from '../../protocol/access/limited-address.ts'
import type { Agent } from '../../protocol/agents/schema.ts'
import { isRefusal } from '../../protocol/errors.ts'
import type { ServicePublication } from '../../protocol/events/sources.ts'
import type { MailReader } from './reader.ts'

export interface MailSettings {
  readonly host: string
  /** Port to listen on; 0 for any free port. */
  readonly port: number
  /** Domain of the agents' addresses. */
  readonly domain: string
  /** Maximum size of a message in bytes. */
  readonly limit: number
  /** Certificate and key in PEM. If they are present, STARTTLS is offered. */
  readonly tls?: { readonly cert: string; readonly key: string }
}
export interface MailListener {
  readonly port: number
  /**
   * Stops accepting connections, and waits a limited time for the open ones before it ends them.
   */
  stop(): Promise<void>
}
type Needs = Pick<
  World,
  'ask' | 'command' | 'everywhere' | 'id' | 'later' | 'log' | 'now' | 'organization' | 'view'
>

/** Maximum number of concurrent connections. */
const MAX_CLIENTS = 100
/**
 * Maximum number of concurrent connections of one IP address, or of one IPv6 network. Mail servers
 * open up to 20 by default, and retry later when they are refused.
 */
const MAX_CLIENTS_PER_ADDRESS = 25
/**
 * Maximum number of rejected recipients of one IP address, or of one IPv6 network, per minute. Each
 * of them is looked up in all partitions. Further recipients are rejected without a lookup.
 */
const MAX_REJECTED = { count: 600, ms: 60_000 } as const
/** Maximum size of all messages in memory, as a multiple of the maximum size of a message. */
const MAX_HELD = 16
/** Maximum number of recipients of a message. */
const MAX_RECIPIENTS = 20
/** Milliseconds of inactivity after which a connection ends. */
const IDLE_MS = 60_000
/** Milliseconds after which a connection ends in any case. */
const SESSION_MS = 600_000
/** Milliseconds within which open connections must end when the listener closes. */
const CLOSE_MS = 5000

interface Recipient {
  readonly project: string
  readonly agent: Agent
}

/** The code of the replies that reject an address. */
const UNKNOWN = 550
/** Creates an SMTP reply that reports a failure (RFC 5321, 4.2). */
const answer = (code: number, message: string): Error =>
  Object.assign(new Error(message), { responseCode: code })
const later = (): Error => answer(451, '4.3.0 The message cannot be stored now; try again later')

/**
 * Listens for messages.
 * @param reader reads the messages. The listener stops it.
 * @throws Error when the port cannot be opened.
 */
export async function listenForMail(
  world: Needs,
  settings: MailSettings,
  reader: MailReader,
): Promise<MailListener> {
  const { domain, limit, tls, host } = settings
  const memory = createSemaphore(MAX_HELD * limit)
  /** The numbers of rejected recipients within the current minute, by address. */
  const rejected = new Map<string, number>()
  const reject = (client: string): void => {
    if (!rejected.has(client)) world.later(MAX_REJECTED.ms, () => rejected.delete(client))
    rejected.set(client, (rejected.get(client) ?? 0) + 1)
  }
  const server = new SMTPServer({
    name: domain,
    banner: 'ready',
    authOptional: true,
    disabledCommands: ['AUTH', ...(tls ? [] : ['STARTTLS'])],
    ...(tls ?? {}),
    size: limit,
    maxClients: MAX_CLIENTS,
    socketTimeout: IDLE_MS,
    closeTimeout: CLOSE_MS,
    disableReverseLookup: true,
    hideENHANCEDSTATUSCODES: true,
    onRcptTo: ({ address }, session, done) => {
      if (session.envelope.rcptTo.length >= MAX_RECIPIENTS)
        return done(answer(452, '4.5.3 Too many recipients'))
      const client = limitedAddress(session.remoteAddress)
      if ((rejected.get(client) ?? 0) >= MAX_REJECTED.count)
        return done(answer(451, '4.7.1 Too many unknown recipients; try again later'))
      recipientOf(world, domain, address).then(
        (found) => {
          if ('responseCode' in found && found.responseCode === UNKNOWN) reject(client)
          done(found instanceof Error ? found : undefined)
        },
        (error: unknown) => {
          world.log.error(
            { event: 'mail_recipient_failed', err: error },
            'e-mail recipient lookup failed',
          )
          done(later())
        },
      )
    },
    onData: (stream, session, done) => {
      receive(world, settings, reader, memory, stream, session).then(
        () => done(null, 'OK: committed'),
        (error: unknown) => {
          if (isLost(error))
            world.log.debug(
              { event: 'mail_connection_lost' },
              'SMTP connection lost during a message',
            )
          else if (!(error instanceof Error && 'responseCode' in error))
            world.log.error(
              { event: 'mail_receive_failed', err: error },
              'e-mail message not received',
            )
          done(error instanceof Error && 'responseCode' in error ? error : later())
        },
      )
    },
  })
  server.on('error', (error) =>
    world.log.warn({ event: 'mail_connection_failed', err: error }, 'SMTP connection failed'),
  )
  const clients = new Map<string, number>()
  server.server.on('connection', (socket: Socket) => {
    const cancel = world.later(SESSION_MS, () => socket.destroy())
    const address = limitedAddress(socket.remoteAddress ?? '')
    const open = (clients.get(address) ?? 0) + 1
    clients.set(address, open)
    socket.once('close', () => {
      cancel()
      const left = (clients.get(address) ?? 1) - 1
      if (left > 0) clients.set(address, left)
      else clients.delete(address)
    })
    if (open > MAX_CLIENTS_PER_ADDRESS)
      socket.end('421 4.7.0 Too many connections from this address; try again later\r\n', () =>
        socket.destroy(),
      )
  })
  const port = await new Promise<number>((open, fail) => {
    server.once('error', fail)
    server.listen(settings.port, host, () => {
      server.off('error', fail)
      const address = server.server.address()
      open(typeof address === 'object' && address ? address.port : settings.port)
    })
  })
  world.log.info({ event: 'mail_listening', host, port, domain }, 'SMTP listener started')
  return {
    port,
    async stop() {
      await new Promise<void>((closed) => server.close(closed))
      await reader.stop()
    },
  }
}

/** Whether an error means that the client has disconnected before the end of its message. */
const isLost = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && error.code === 'ECONNECTION'

/** Returns the agent with the given address, or the reply that rejects the address. */
async function recipientOf(
  world: Needs,
  domain: string,
  address: string,
): Promise<Recipient | Error> {
  const at = address.lastIndexOf('@')
  // The SMTP server decodes internationalized domains.
  if (domainToASCII(address.slice(at + 1)) !== domain)
    return answer(UNKNOWN, '5.7.1 This server accepts e-mail for its own domain only')
  const id = agentIdOf(address.slice(0, at))
  const unknown = answer(UNKNOWN, '5.1.1 No such address')
  if (id === undefined) return unknown
  const answers = await world.everywhere('agent_home', { agent_id: id })
  const project = answers
    .map((one) => (isRefusal(one) ? undefined : one.project))
    .find((one) => one !== undefined)
  if (project === undefined) return answers.some(isRefusal) ? later() : unknown
  const agent = await world.view(project, 'agent.get', { id })
  if (isRefusal(agent)) return agent.refused === 'not_found' ? unknown : later()
  return 'email_address' in agent && agent.status === 'active' ? { project, agent } : unknown
}

/**
 * Returns the agent id in the local part of an address. Mail servers may change the case of the
 * local part. Ids are upper-case after their prefix.
 */
const agentIdOf = (local: string): string | undefined => {
  const match = /^(agt)_([0-9a-z]{26})$/i.exec(local)
  return match ? `agt_${(match[2] ?? '').toUpperCase()}` : undefined
}

/**
 * Accepts a message: receives it completely, reads it, and publishes it for each recipient (M1).
 * @throws an SMTP reply when the message is not accepted.
 */
async function receive(
  world: Needs,
  settings: MailSettings,
  reader: MailReader,
  memory: Semaphore,
  stream: Readable & { sizeExceeded?: boolean },
  session: SMTPServerSession,
): Promise<void> {
  const releases: (() => void)[] = []
  try {
    const raw = await read(stream, settings.limit, memory, releases)
    await publishMessage(world, settings, reader, raw, session)
  } finally {
    for (const release of releases) release()
  }
}
async function publishMessage(
  world: Needs,
  { domain }: MailSettings,
  reader: MailReader,
  raw: Buffer,
  session: SMTPServerSession,
): Promise<void> {
  const { mailFrom, rcptTo } = session.envelope
  const message = await reader.read({
    raw,
    transaction: {
      ip: session.remoteAddress,
      helo: session.hostNameAppearsAs || '',
      sender: mailFrom ? mailFrom.address : '',
      mta: domain,
    },
    at: world.now(),
  })
  if ('error' in message) {
    world.log.warn(
      { event: 'mail_unreadable', reason: message.error },
      'e-mail message not readable',
    )
    throw answer(554, `5.6.0 The message ${message.error}`)
  }
  const { message_id, content } = message
  const named = new Set(rcptTo.map(({ address }) => address.toLowerCase()))
  for (const address of named) {
    const recipient = await recipientOf(world, domain, address)
    if (recipient instanceof Error) throw recipient
    const { project, agent } = recipient
    await publish(world, project, {
      event_type: 'email.received',
      source_kind: 'email',
      source_id: message_id,
      event: { ...content, agent_id: agent.id },
      meta: { agent_id: agent.id },
      depth: 0,
      dedup_key: `email:${agent.id}:${createHash('sha256').update(message_id).digest('hex')}`,
    })
  }
}

/**
 * Returns the content of a stream. If the message is refused, the rest is read and discarded.
 * @param releases receives the functions that release the memory of the content.
 * @throws an SMTP reply when the content is too large, or when there is no memory for it.
 */
async function read(
  stream: Readable,
  limit: number,
  memory: Semaphore,
  releases: (() => void)[],
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  let refused: Error | undefined
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    size += chunk.length
    if (size > limit) refused = answer(552, `5.3.4 The message is larger than ${limit} bytes`)
    const release = refused ? undefined : memory.tryAcquire(chunk.length)
    if (release) {
      releases.push(release)
      chunks.push(chunk)
      continue
    }
    refused ??= answer(451, '4.3.1 Too many messages are being received; try again later')
    chunks.length = 0
    for (const free of releases.splice(0)) free()
  }
  if (refused) throw refused
  return Buffer.concat(chunks)
}

/**
 * Commits the event.
 * @throws an SMTP reply when the event cannot be committed now.
 */
async function publish(
  world: Needs,
  project: string,
  publication: ServicePublication,
): Promise<void> {
  const outcome = await publishEvent(world, project, 'email', publication, {
    at: world.now(),
    principal: { type: 'system', id: 'email', name: 'E-mail' },
    credential: { type: 'internal', id: 'email' },
  })
  if (isRefusal(outcome)) throw later()
}
