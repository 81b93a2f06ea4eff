/**
 * The OpenAPI 3.1 document: a fold over the table of rows. JSON Schema is what the rows are written in, so nothing is
 * described twice.
 */
import { ApiKey, ApiKeyCreated, PrincipalRecord } from './api/access.ts'
import { ActionLogEntry, Job } from './api/jobs.ts'
import { AuditEntry, Project } from './api/projects.ts'
import { Role, RoleAssignment } from './api/roles.ts'
import {
  ProjectRunEvent,
  RunEventRecord,
  RunStep,
  WorkflowRun,
  WorkflowRunDetail,
} from './runs/schema.ts'
import { WaitingOn } from './api/waiting.ts'
import { Workflow, WorkflowVersion } from './api/workflows.ts'
import { api } from './api.ts'
import { routeOf, type Row } from './contract.ts'
import { errors, type Code } from './errors.ts'
import { Consumer, Interaction, Policy, Reference, Response } from './interaction/shapes.ts'
import { LoopRun } from './loop/run.ts'
import { Loop, Trigger } from './loop/shapes.ts'
import { Spec } from './spec.ts'
import { Step } from './steps.ts'
import { Worker } from './worker.ts'

/** Schemas that the document names once and refers to. */
const named = {
  ActionLogEntry,
  ApiKey,
  ApiKeyCreated,
  AuditEntry,
  Interaction,
  InteractionConsumer: Consumer,
  InteractionReference: Reference,
  InteractionResponse: Response,
  Job,
  PrincipalRecord,
  Project,
  ProjectRunEvent,
  Loop,
  LoopRun,
  Trigger,
  ResolutionPolicy: Policy,
  Role,
  RoleAssignment,
  RunEventRecord,
  RunStep,
  Spec,
  Step,
  WaitingOn,
  Worker,
  Workflow,
  WorkflowRun,
  WorkflowRunDetail,
  WorkflowVersion,
}
const names = new Map<unknown, string>(
  Object.entries(named).map(([name, schema]) => [schema, name]),
)

type Json = Readonly<Record<string, unknown>>
const tags: Readonly<Record<string, string>> = {
  projects: 'Projects of the organization.',
  'api keys': 'Keys of the organization and of projects.',
  access: 'Principals, roles and permissions.',
  'audit logs': 'Who changed what.',
  workflows: 'Workflow definitions and their versions.',
  loops: 'Loops: workflows with what starts them, and how many of their runs may be under way.',
  runs: 'Runs: starting, reading, controlling and following them.',
  interactions:
    'Questions to people: approvals, answers and reviews, and the links with which they are answered.',
  people: 'People of a project, their tokens, and who the caller is.',
  workers: 'Workers and the socket they work over.',
  mcp: 'The tools of a project over the Model Context Protocol.',
  compat: 'Other forms of the operations above that existing clients use.',
}

/** A schema as plain JSON, with references to named ones. @param top keep this one itself written out. */
function plain(schema: unknown, top?: unknown): unknown {
  const name = schema === top ? undefined : names.get(schema)
  if (name !== undefined) return { $ref: `#/components/schemas/${name}` }
  if (Array.isArray(schema)) return schema.map((item) => plain(item, top))
  if (typeof schema !== 'object' || schema === null) return schema
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, plain(value, top)]))
}

const json = (schema: unknown): Json => ({ 'application/json': { schema: plain(schema) } })
const header = (name: string): Json => ({ $ref: `#/components/parameters/${name}` })
const described = (schema: unknown): Json => {
  const { description } = schema as { description?: string }
  return description === undefined ? {} : { description }
}

/** Path, query and header parameters of a row. */
function parametersOf(row: Row): Json[] {
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
      schema: plain(schema),
      ...described(schema),
    })),
    ...(method === 'POST' ? [header('IdempotencyKey')] : []),
    ...(row.verb === 'stream' && row.shape.stream !== 'socket' ? [header('LastEventID')] : []),
  ]
}

/** What a row takes, by content type. */
function bodyOf({ body, upload }: Row['shape']): Json {
  if (!upload) return json(body)
  const form = plain(body) as { readonly properties?: Json }
  return {
    'multipart/form-data': {
      schema: {
        ...form,
        properties: { ...form.properties, file: { type: 'string', format: 'binary' } },
      },
    },
    ...json(body),
  }
}

const events: Json = {
  'text/event-stream': {
    schema: {
      type: 'string',
      description: 'Frames `id`, `event`, `data`; data is one record as JSON',
    },
  },
}
/** What a row answers on success, by content type. */
function contentOf({ shape, verb }: Row): Json | undefined {
  if (!shape.reply) return undefined
  if (verb === 'blob') return { 'application/octet-stream': { schema: plain(shape.reply) } }
  if (verb !== 'stream') return json(shape.reply)
  return shape.stream === 'accept' ? { ...json(shape.reply), ...events } : events
}

/** Every code that a row may refuse with: its own, and those of every row that is asked like it. */
export function refusalsOf({ shape, verb, route }: Row): Code[] {
  const codes: Code[] = [
    'bad_request',
    'unauthorized',
    'forbidden',
    'permission_denied',
    'rate_limit_exceeded',
    'internal',
    'service_unavailable',
  ]
  // A command that takes no body says so to one that is sent.
  if (verb === 'command') codes.push('payload_too_large', 'unsupported_media_type')
  if (route.startsWith('POST ')) codes.push('idempotency_key_conflict')
  if (route.includes('/:project')) codes.push('not_found')
  return [...new Set([...codes, ...(shape.errors ?? [])])]
}

/** Success and refusals of a row, by status. */
function responsesOf(row: Row): Json {
  const { shape } = row
  const content = contentOf(row)
  const regular = [
    shape.status ?? 200,
    ...(shape.alsoStatus ?? []),
    ...(shape.bare === undefined ? [] : [shape.bare]),
  ]
  // A command that is answered by a stream is answered 200.
  const streams = row.verb === 'command' && shape.stream === 'accept'
  const success = (status: number): Json => {
    const given = {
      ...(regular.includes(status) && status !== 204 && status !== shape.bare && content),
      ...(streams && status === 200 && events),
    }
    return {
      description: shape.summary,
      headers: { 'X-Request-ID': { $ref: '#/components/headers/X-Request-ID' } },
      ...(Object.keys(given).length > 0 && { content: given }),
    }
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

function operationOf(name: string, row: Row): Json {
  const { shape } = row
  return {
    operationId: name,
    summary: shape.summary,
    tags: [shape.tag],
    description: [
      shape.permission === 'authenticated'
        ? 'Any valid credential.'
        : `Needs the permission \`${shape.permission}\`.`,
      ...(shape.alias ? [`Another form of \`${shape.alias}\`.`] : []),
      ...(shape.stream === 'accept'
        ? ['With `Accept: text/event-stream` the answer is a stream.']
        : []),
    ].join(' '),
    parameters: parametersOf(row),
    ...(shape.body && { requestBody: { required: !shape.bodyOptional, content: bodyOf(shape) } }),
    responses: responsesOf(row),
  }
}

/** The document. @param settings brand and version of the service. */
export function openapi({
  brand,
  version,
}: {
  readonly brand: string
  readonly version: string
}): Json {
  const paths: Record<string, Record<string, unknown>> = {}
  const rows = Object.entries(api as Readonly<Record<string, Row>>)
  for (const [name, row] of rows) {
    const { method, path } = routeOf(row)
    const template = path.replaceAll(/:(\w+)/g, '{$1}')
    paths[template] = { ...paths[template], [method.toLowerCase()]: operationOf(name, row) }
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
      title: `${brand} API`,
      version,
      description:
        'Coordinates the work of humans, systems and agents: workflows, runs, and the workers that execute them.',
    },
    servers: [{ url: '/v1' }],
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
            'A repeat with the same key answers what the first request answered; with another body it is refused. Where the body has an `idempotency_key`, that counts alone.',
        },
        LastEventID: {
          name: 'Last-Event-ID',
          in: 'header',
          schema: { type: 'string' },
          description: 'Go on after this frame; of this and the query, the larger counts.',
        },
      },
      headers: {
        'X-Request-ID': {
          description: 'Identifies the request in logs and in the audit log',
          schema: { type: 'string' },
        },
        'Retry-After': {
          description: 'Seconds to wait before the same request can succeed',
          schema: { type: 'integer' },
        },
      },
      schemas: {
        ...Object.fromEntries(
          Object.entries(named).map(([name, schema]) => [name, plain(schema, schema)]),
        ),
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
