/**
 * Generates the OpenAPI 3.1 document from the table of rows and from the operations that require no
 * credential. Rows and operations already have JSON Schemas, so nothing is described twice.
 */
import { FormError, type Unauthenticated, unauthenticated } from '../access/unauthenticated-rows.ts'
import { api } from '../api.ts'
import { isConditional, isTagged } from '../conditional.ts'
import { type Row, routeOf } from '../contract.ts'
import { type Code, errors } from '../errors.ts'
import { productName } from '../naming.ts'
import { type Examples, withExample } from './examples.ts'
import { type Names, nameSchemas } from './schemas.ts'

type Operation = Pick<Row, 'verb' | 'route'> & {
  readonly shape: Unauthenticated['shape'] & Partial<Pick<Row['shape'], 'permission'>>
  readonly headers?: Unauthenticated['headers']
  readonly form?: Unauthenticated['form']
}
type Json = Readonly<Record<string, unknown>>
const tags: Readonly<Record<string, string>> = {
  projects: 'Projects of the organization.',
  'api keys': 'Keys of the organization and of projects.',
  access: 'Principals, roles and permissions.',
  'audit logs': 'Changes of the configuration, with their principals and credentials.',
  'definition resolver': 'The service that supplies the definitions of agents.',
  overview: 'State of a project and of the installation, for pages and dashboards.',
  workflows: 'Workflow definitions and their versions.',
  loops: 'Loops: workflows with triggers and rules for concurrent runs.',
  runs: 'Runs: starting, reading, controlling and following them.',
  interactions:
    'Questions to people: approvals, answers and reviews, and the links with which they are ' +
    'answered.',
  people: 'People of a project, their tokens, and the identity of the caller.',
  workers: 'Workers and the worker socket.',
  mcp: 'The tools of a project over the Model Context Protocol.',
  compat: 'Aliases of the operations above, for existing clients.',
}

const json = (schema: unknown): Json => ({ 'application/json': { schema } })
const header = (name: string): Json => ({ $ref: `#/components/parameters/${name}` })
const described = (schema: unknown): Json => {
  const { description } = schema as { description?: string }
  return description === undefined ? {} : { description }
}

function parametersOf(row: Operation, { reference }: Names, brand: string): Json[] {
  const { method, slots } = routeOf(row)
  const query = row.shape.query as { properties?: Json; required?: readonly string[] } | undefined
  return [
    ...slots.map((name) => ({
      name,
      in: 'path',
      required: true,
      schema: { type: 'string' },
      ...(name === 'project' && { description: 'Handle of the project' }),
    })),
    ...Object.entries(query?.properties ?? {}).map(([name, schema]) => ({
      name,
      in: 'query',
      required: query?.required?.includes(name) ?? false,
      schema: reference(schema),
      ...described(schema),
    })),
    ...((method === 'POST' || method === 'PATCH') &&
    row.verb !== 'query' &&
    row.verb !== 'stream' &&
    row.shape.permission !== undefined
      ? [header('IdempotencyKey')]
      : []),
    ...(isConditional(row) ? [header('IfMatch')] : []),
    ...Object.entries(row.headers?.(brand) ?? {}).map(([name, schema]) => ({
      name,
      in: 'header',
      required: false,
      schema: reference(schema),
      ...described(schema),
    })),
    ...(row.verb === 'stream' && row.shape.stream !== 'socket' && method === 'GET'
      ? [header('LastEventID')]
      : []),
  ]
}

function bodyOf({ body, upload }: Operation['shape'], { reference, written }: Names): Json {
  if (!upload) return json(reference(body))
  const form = written(body) as { readonly properties?: Json }
  return {
    'multipart/form-data': {
      schema: {
        ...form,
        properties: { ...form.properties, file: { type: 'string', format: 'binary' } },
      },
    },
    ...(upload === true && json(reference(body))),
  }
}

const events: Json = {
  'text/event-stream': {
    schema: {
      type: 'string',
      description:
        'Frames with `id`, `event` and `data`; `data` is one record as JSON. The AsyncAPI ' +
        'document at `/v1/asyncapi.json` contains the schema of each event.',
    },
  },
}
function contentOf({ shape, verb }: Operation, { reference }: Names): Json | undefined {
  if (!shape.reply) return undefined
  if (verb === 'blob' && !shape.upload)
    return { 'application/octet-stream': { schema: reference(shape.reply) } }
  if (verb !== 'stream') return json(reference(shape.reply))
  return shape.stream === 'accept' ? { ...json(reference(shape.reply)), ...events } : events
}

/**
 * Returns every refusal code of a row: its own codes, the codes of all rows, and the codes that
 * result from its verb, method, path and authentication.
 */
export function refusalsOf(row: Operation): Code[] {
  const { shape, verb, route } = row
  const credential: Code[] = ['unauthorized', 'forbidden', 'permission_denied']
  const codes: Code[] = [
    'bad_request',
    ...(shape.permission === undefined ? [] : credential),
    'rate_limit_exceeded',
    'internal',
    'service_unavailable',
  ]
  // These codes also apply to commands that have no body, because such a command refuses a request
  // with a body.
  if (verb === 'command' || shape.body) codes.push('payload_too_large', 'unsupported_media_type')
  if (verb !== 'query' && route.startsWith('POST ') && shape.permission !== undefined)
    codes.push('idempotency_key_conflict')
  if (route.includes('/:project')) codes.push('not_found')
  if (isConditional(row)) codes.push('precondition_failed')
  return [...new Set([...codes, ...(shape.errors ?? [])])]
}

const formRefusals = ({ reference }: Names): Json =>
  Object.fromEntries(
    [
      [
        '400',
        'The form is invalid, the token is not available yet, or the sign-in was denied or has ' +
          'expired',
      ],
      ['429', 'Too many requests'],
      ['503', 'The service cannot answer right now'],
    ].map(([status, description]) => [
      status,
      { description, content: json(reference(FormError)) },
    ]),
  )

function responsesOf(row: Operation, names: Names): Json {
  const { shape } = row
  const content = contentOf(row, names)
  const regular = [
    shape.status ?? 200,
    ...(shape.alsoStatus ?? []),
    ...(shape.bare === undefined ? [] : [shape.bare]),
  ]
  // A command that answers with an event stream does so with status 200.
  const streams = row.verb === 'command' && shape.stream === 'accept'
  const empty: ReadonlySet<number | undefined> = new Set([204, 304, shape.bare])
  const success = (status: number): Json => {
    const media = {
      ...(regular.includes(status) && !empty.has(status) && content),
      ...(streams && status === 200 && events),
    }
    return {
      description: shape.summary,
      headers: {
        'X-Request-ID': { $ref: '#/components/headers/X-Request-ID' },
        ...(isTagged(row) && { ETag: { $ref: '#/components/headers/ETag' } }),
      },
      ...(Object.keys(media).length > 0 && { content: media }),
    }
  }
  if (row.form)
    return {
      ...Object.fromEntries(regular.map((status) => [String(status), success(status)])),
      ...formRefusals(names),
    }
  const codes = refusalsOf(row)
  const statuses = [...new Set(codes.map((code) => errors[code].status))].sort((a, b) => a - b)
  const refusals = statuses.map((status) => [
    String(status),
    {
      description: codes
        .filter((code) => errors[code].status === status)
        .map((code) => `\`${code}\`: ${errors[code].message}`)
        .join('\n\n'),
      ...((status === 429 || status === 503) && {
        headers: { 'Retry-After': { $ref: '#/components/headers/Retry-After' } },
      }),
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
    },
  ])
  if (shape.stream === 'socket')
    return {
      '101': { description: 'The connection is a WebSocket' },
      ...Object.fromEntries(refusals),
    }
  return {
    ...Object.fromEntries(
      [...new Set([...regular, ...(streams ? [200] : [])])].map((status) => [
        String(status),
        success(status),
      ]),
    ),
    ...Object.fromEntries(refusals),
  }
}

function operationOf(name: string, row: Operation, names: Names, brand: string): Json {
  const { shape } = row
  return {
    operationId: name,
    summary: shape.summary,
    tags: [shape.tag],
    ...(shape.alias !== undefined && { deprecated: true }),
    ...(shape.permission === undefined && { security: [] }),
    description: [
      shape.permission === undefined
        ? 'Requires no API key.'
        : shape.permission === 'authenticated'
          ? 'Requires a valid credential.'
          : `Requires the permission \`${shape.permission}\`.`,
      ...(shape.alias ? [`Alias of \`${shape.alias}\`.`] : []),
      ...(shape.stream === 'accept'
        ? ['With `Accept: text/event-stream` the response is an event stream.']
        : []),
    ].join(' '),
    parameters: parametersOf(row, names, brand),
    ...(row.form && {
      requestBody: {
        required: true,
        content: { 'application/x-www-form-urlencoded': { schema: row.form(brand) } },
      },
    }),
    ...(shape.body && {
      requestBody: { required: !shape.bodyOptional, content: bodyOf(shape, names) },
    }),
    responses: responsesOf(row, names),
  }
}

/** The data about the installation that a document contains. */
export interface Described {
  readonly brand: string
  readonly version: string
  /** URL of the service without a trailing slash; absent if none is configured. */
  readonly public_url?: string
  readonly examples?: Examples
}

/** Generates the OpenAPI document. */
export function openapi({ brand, version, public_url = '', examples = {} }: Described): Json {
  const paths: Record<string, Record<string, unknown>> = {}
  const operations: Readonly<Record<string, Operation>> = { ...api, ...unauthenticated }
  const names = nameSchemas(operations)
  const rows = Object.entries(operations)
  for (const [name, row] of rows) {
    const { method, path } = routeOf(row)
    const template = path.replaceAll(/:(\w+)/g, '{$1}')
    paths[template] = {
      ...paths[template],
      [method.toLowerCase()]: withExample(operationOf(name, row, names, brand), examples[name]),
    }
  }
  const used = new Set(rows.map(([, row]) => row.shape.tag))
  const order = [
    ...Object.keys(tags).filter((tag) => tag !== 'compat'),
    ...[...used].filter((tag) => !(tag in tags)),
    'compat',
  ].filter((tag) => used.has(tag))
  return {
    openapi: '3.1.0',
    info: {
      title: `${productName(brand)} API`,
      version,
      description:
        'Coordinates the work of humans, systems and agents: workflows, runs, ' +
        'and the workers that execute them. ' +
        'Event streams and the worker socket are described by the [AsyncAPI ' +
        'document](/v1/asyncapi.json).',
    },
    servers: [
      { url: `${public_url}/v1`, description: 'Production' },
      { url: 'http://localhost:8080/v1', description: 'Local development' },
    ],
    security: [{ key: [] }],
    tags: order.map((name) => ({ name, description: tags[name] ?? name })),
    paths,
    components: {
      securitySchemes: {
        key: {
          type: 'http',
          scheme: 'bearer',
          description: 'An API key: `Authorization: Bearer <key>`',
        },
      },
      parameters: {
        IdempotencyKey: {
          name: 'Idempotency-Key',
          in: 'header',
          schema: { type: 'string', minLength: 1, maxLength: 255 },
          description:
            'Key that marks repeats: a repeated request with the same key gets the answer of the ' +
            'first request. It is refused if its body differs. If the body contains an ' +
            '`idempotency_key`, this header is ignored.',
        },
        IfMatch: {
          name: 'If-Match',
          in: 'header',
          schema: { type: 'string' },
          description:
            'The `ETag` of the record as it was read. The update is refused with 412 if the record ' +
            'has changed since then.',
        },
        LastEventID: {
          name: 'Last-Event-ID',
          in: 'header',
          schema: { type: 'string' },
          description:
            'Id of the last frame received; the stream continues after it. If the query also ' +
            'contains a position, the larger one applies; for the stream of a transcript, the ' +
            'cursor of the query applies.',
        },
      },
      headers: {
        'X-Request-ID': {
          description: 'Identifies the request in logs and in the audit log',
          schema: { type: 'string' },
        },
        ETag: {
          description: 'The entity tag of the record, for `If-Match` of an update',
          schema: { type: 'string' },
        },
        'Retry-After': {
          description: 'Seconds to wait before the same request can succeed',
          schema: { type: 'integer' },
        },
      },
      schemas: {
        ...names.components(paths),
        Error: errorSchema,
      },
    },
  }
}

const errorSchema = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: { type: 'string', enum: Object.keys(errors) },
        message: { type: 'string' },
        details: {
          type: 'object',
          properties: {
            fields: {
              type: 'array',
              items: {
                type: 'object',
                required: ['field', 'message'],
                properties: {
                  field: { type: 'string' },
                  message: { type: 'string' },
                  expected: {},
                  actual: {},
                },
              },
            },
          },
        },
      },
    },
  },
}
