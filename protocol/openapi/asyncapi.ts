/**
 * Generates the AsyncAPI 3.0 document, which describes the frames of event streams and of
 * WebSockets. Routes come from the table of rows. Schemas come from the frames that the service
 * sends and validates.
 */
import type { TSchema } from 'typebox'
import { api, type RowName } from '../api.ts'
import { type Row, routeOf } from '../contract.ts'
import { productName } from '../naming.ts'
import { closeCodes, down, socketBearerPrefix, socketProtocol, up } from '../workers/socket.ts'
import { fromPerson, toPerson } from '../workers/terminals.ts'
import type { Described } from './document.ts'
import { type Frames, streamFrames } from './frames.ts'
import { type Names, nameSchemas, pascal } from './schemas.ts'

type Json = Readonly<Record<string, unknown>>
/** A channel with its frames in each direction, from the point of view of the service. */
interface Channel {
  readonly name: RowName
  readonly frames: Readonly<Record<'send' | 'receive', Frames>>
  /** The peer of the service; only for a WebSocket. */
  readonly peer?: 'worker' | 'person'
}
const sockets: readonly Channel[] = [
  { name: 'worker.socket', frames: { send: down, receive: up }, peer: 'worker' },
  {
    name: 'environment.terminal',
    frames: { send: toPerson, receive: fromPerson },
    peer: 'person',
  },
]
const channels: readonly Channel[] = [
  ...Object.entries(streamFrames).map(([name, send = {}]) => ({
    name: name as RowName,
    frames: { send, receive: {} },
  })),
  ...sockets,
]

/**
 * Returns the id of a message. It contains the channel and the direction, because the same event
 * name may occur in several channels and in both directions.
 */
const messageId = ({ name, peer }: Channel, direction: 'send' | 'receive', type: string): string =>
  `${name}.${direction === 'receive' ? `from_${peer}.` : ''}${type}`
const pairs = (channel: Channel) =>
  (['send', 'receive'] as const).flatMap((direction) =>
    Object.entries(channel.frames[direction]).map(
      ([type, schema]) => [messageId(channel, direction, type), type, schema, direction] as const,
    ),
  )

function channelOf(channel: Channel): Json {
  const row: Row = api[channel.name]
  const { path, slots } = routeOf(row)
  const codes = Object.entries(closeCodes).map(([reason, code]) => `${code} ${reason}`)
  const notes =
    channel.peer !== undefined
      ? 'A WebSocket with one JSON object per message. ' +
        'The credential is the header Authorization, ' +
        `or the sub-protocols \`${socketProtocol}\` and \`${socketBearerPrefix}<key in base64url>\`. ` +
        `Close codes: ${codes.join(', ')}.`
      : 'Server-Sent Events: the name of a message is the field `event`, ' +
        'its payload is the JSON of the field `data`. ' +
        'Clients ignore events that they do not know.'
  return {
    address: path.replaceAll(/:(\w+)/g, '{$1}'),
    title: channel.name,
    description: `${row.shape.summary}. ${notes}`,
    parameters: Object.fromEntries(
      slots.map((slot) => [
        slot,
        {
          description:
            slot === 'project' ? 'Handle of the project' : `The parameter ${slot} of the path`,
        },
      ]),
    ),
    messages: Object.fromEntries(
      pairs(channel).map(([id]) => [id, { $ref: `#/components/messages/${id}` }]),
    ),
  }
}

function operationsOf(channel: Channel): readonly (readonly [string, Json])[] {
  return (['send', 'receive'] as const).flatMap((action) => {
    const messages = pairs(channel).filter(([, , , direction]) => direction === action)
    if (messages.length === 0) return []
    return [
      [
        `${channel.name}.${action}`,
        {
          action,
          channel: { $ref: `#/channels/${channel.name}` },
          messages: messages.map(([id]) => ({
            $ref: `#/channels/${channel.name}/messages/${id}`,
          })),
        },
      ],
    ]
  })
}

const messagesOf = (channel: Channel, { reference }: Names): readonly (readonly [string, Json])[] =>
  pairs(channel).map(([id, type, schema]) => [
    id,
    { name: type, contentType: 'application/json', payload: reference(schema) },
  ])

function serverOf(address: string, description: string): Json {
  const [, protocol = 'http', host = '', base = ''] =
    /^(https?):\/\/([^/]+)(.*)$/.exec(address) ?? []
  return {
    host,
    pathname: `${base}/v1`,
    protocol,
    description,
    security: [{ $ref: '#/components/securitySchemes/key' }],
  }
}

/** Generates the AsyncAPI document. */
export function asyncapi({ brand, version, public_url }: Described): Json {
  const frames: Record<string, TSchema> = {}
  for (const channel of channels)
    for (const [id, , schema] of pairs(channel)) frames[`${pascal(id)}Frame`] = schema
  const names = nameSchemas({}, frames)
  const messages = Object.fromEntries(channels.flatMap((channel) => messagesOf(channel, names)))
  return {
    asyncapi: '3.0.0',
    info: {
      title: `${productName(brand)} streams and sockets`,
      version,
      description:
        'The frames of event streams, of the worker socket and of terminals. ' +
        'The OpenAPI document at `/v1/openapi.json` describes every other operation.',
    },
    defaultContentType: 'application/json',
    servers: {
      ...(public_url !== undefined && { production: serverOf(public_url, 'Production') }),
      local: serverOf('http://localhost:8080', 'Local development'),
    },
    channels: Object.fromEntries(channels.map((channel) => [channel.name, channelOf(channel)])),
    operations: Object.fromEntries(channels.flatMap(operationsOf)),
    components: {
      messages,
      schemas: names.components(messages),
      securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
    },
  }
}
