/**
 * Operations without a credential in a header. They are not rows of the table, because every row
 * requires a credential. Instead, their handlers check a signature, a token, a handle, a device
 * code, the body of a sign-in or the cookie of a console session. Anyone may request a device code
 * or the state of the console session. This file declares the routes and shapes, which the API
 * reference lists together with the rows.
 */
import { type TSchema, Type } from 'typebox'
import { Closed, JsonObject } from '../common.ts'
import type { Row, Shape } from '../contract.ts'
import { EventAccepted } from '../events/rows.ts'
import { ConsoleIdentity, checkSignIn, SignIn } from './console-session.ts'

/** An operation that requires no credential in a header. */
export interface Unauthenticated extends Pick<Row, 'verb' | 'route'> {
  readonly shape: Omit<Shape, 'permission'>
  /**
   * Returns the schema of the form body. Absent if the body is not a form.
   * @param brand brand of the installation, which prefixes names of fields.
   */
  readonly form?: (brand: string) => TSchema
  /**
   * Returns the schemas of the request headers that the operation reads, by name.
   * @param brand brand of the installation, which is part of the names of headers.
   */
  readonly headers?: (brand: string) => Readonly<Record<string, TSchema>>
}

/** The grant type that RFC 8628 defines. */
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code'
/**
 * The fields that a device sends to describe itself. On the wire, the lower-case brand and an
 * underscore may precede each name.
 */
export const deviceFields = [
  'label',
  'requested_org_id',
  'requested_project_handle',
  'client',
  'client_version',
  'client_os',
  'client_arch',
] as const
/** The error reply of the two device operations (RFC 6749, section 5.2). */
export const FormError = Type.Object({
  error: Type.String(),
  error_description: Type.Optional(Type.String()),
})

/** The codes that a device receives: one to show to its user, and one for polling. */
export const DeviceCode = Type.Object({
  device_code: Type.String(),
  user_code: Type.String(),
  verification_uri: Type.String(),
  verification_uri_complete: Type.String(),
  expires_in: Type.Integer({ description: 'Seconds' }),
  interval: Type.Integer({
    description: 'Minimum number of seconds between two requests for the token',
  }),
})
/** The reply to a device after a person has approved its request. */
export const DeviceToken = Type.Object({
  access_token: Type.String(),
  token_type: Type.Literal('Bearer'),
  credential_id: Type.String(),
  project_id: Type.Optional(Type.String()),
  project_handle: Type.Optional(Type.String()),
})

export const unauthenticated = {
  'artifact.download': {
    verb: 'blob',
    route: 'GET /artifact-downloads/:token',
    shape: {
      summary:
        'Content of an artifact, or one range of it; the token of a signed URL authenticates the ' +
        'request',
      tag: 'artifacts',
      reply: Type.String({ format: 'binary' }),
      alsoStatus: [206, 304],
      errors: [
        'not_found',
        'conflict',
        'precondition_failed',
        'range_not_satisfiable',
        'artifact_storage_unavailable',
      ],
    },
  },
  'console.session': {
    verb: 'query',
    route: 'GET /auth/console/session',
    shape: {
      summary: 'The console session of this browser, and the available ways to sign in',
      tag: 'console',
      reply: ConsoleIdentity,
    },
  },
  'console.sign_in': {
    verb: 'command',
    route: 'POST /auth/console/sessions',
    shape: {
      summary:
        'Sign in to the console, or add a credential to the console session; sets its cookie',
      tag: 'console',
      body: SignIn,
      check: checkSignIn,
      reply: ConsoleIdentity,
      status: 201,
      limit: 4096,
      errors: ['unauthorized', 'forbidden', 'conflict'],
    },
  },
  'console.sign_out': {
    verb: 'command',
    route: 'DELETE /auth/console/session',
    shape: {
      summary: 'Sign out of the console',
      tag: 'console',
      status: 204,
      errors: ['forbidden'],
    },
  },
  'device.code': {
    verb: 'command',
    route: 'POST /auth/device/code',
    shape: {
      summary: 'Start the sign-in of a device (RFC 8628)',
      tag: 'people',
      reply: DeviceCode,
    },
    form: (brand) =>
      Type.Object(
        Object.fromEntries(
          deviceFields.map((name) => [
            `${brand.toLowerCase()}_${name}`,
            Type.Optional(Type.String({ maxLength: 100, description: 'The prefix is optional' })),
          ]),
        ),
      ),
  },
  'device.token': {
    verb: 'command',
    route: 'POST /auth/device/token',
    shape: {
      summary: 'Get the token of a device whose sign-in was allowed (RFC 8628)',
      tag: 'people',
      reply: DeviceToken,
    },
    form: () =>
      Type.Object({
        grant_type: Type.Literal(DEVICE_GRANT),
        device_code: Type.String(),
      }),
  },
  'integration.receive': {
    verb: 'command',
    route: 'POST /projects/:project/integrations/:provider',
    shape: {
      summary: 'Receive a webhook of github or gitlab; its signature authenticates the request',
      tag: 'events',
      body: JsonObject,
      reply: EventAccepted,
      status: 202,
      bare: 204,
      limit: 4_194_304,
      errors: ['invalid_signature', 'not_found', 'payload_too_large'],
    },
    headers: () => ({
      'X-Hub-Signature-256': Type.String({
        pattern: '^sha256=[0-9A-Fa-f]{64}$',
        description:
          'GitHub: HMAC-SHA256 of the body in hex, with the secret of the webhook as the key',
      }),
      'X-GitHub-Event': Type.String({ description: 'GitHub: the resource of the event' }),
      'X-GitHub-Delivery': Type.String({
        maxLength: 255,
        description: 'GitHub: a repeat within 24 hours is the same source event',
      }),
      'X-Gitlab-Token': Type.String({ description: 'GitLab: the secret token of the webhook' }),
      'webhook-signature': Type.String({
        description: 'GitLab: HMAC-SHA256 of webhook-id, webhook-timestamp and body, in base64',
      }),
      'Idempotency-Key': Type.String({
        maxLength: 255,
        description: 'GitLab: a repeat within 24 hours is the same source event',
      }),
    }),
  },
  'trigger.http': {
    verb: 'command',
    route: 'POST /triggers/http/:http_handle',
    shape: {
      summary: 'Fire an HTTP trigger of a loop; its handle and signature authenticate the request',
      tag: 'loops',
      query: Closed({
        idempotency_key: Type.Optional(
          Type.String({
            maxLength: 255,
            description:
              'A repeat within 24 hours is the same source event; takes precedence over the ' +
              'headers X-Idempotency-Key and Idempotency-Key',
          }),
        ),
      }),
      body: JsonObject,
      bodyOptional: true,
      reply: EventAccepted,
      status: 202,
      limit: 262_144,
      errors: [
        'invalid_signature',
        'not_found',
        'loop_paused',
        'loop_not_runnable',
        'payload_too_large',
      ],
    },
    headers: (brand) => ({
      'X-Idempotency-Key': Type.String({
        maxLength: 255,
        description:
          'A repeat within 24 hours is the same source event; takes precedence over the header ' +
          'Idempotency-Key',
      }),
      [`X-${brand}-Signature`]: Type.String({
        pattern: '^sha256=[0-9A-Fa-f]{64}$',
        description:
          'HMAC-SHA256 of the body in hex, with the secret of the trigger as the key; required ' +
          'if the trigger has a secret',
      }),
    }),
  },
} as const satisfies Readonly<Record<string, Unauthenticated>>
