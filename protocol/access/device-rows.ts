/**
 * Sign-in on a device without a browser, as defined in RFC 8628. The device requests a code, a
 * signed-in person approves the request, and the device receives a personal token of that person. A
 * request expires after ten minutes.
 *
 * This file declares the rows for people, and the internal commands and events of the organization.
 * `unauthenticated-rows.ts` declares the two operations that the device calls.
 */
import { type Static, Type } from 'typebox'
import { Closed, pageOf, paging, Timestamp } from '../common.ts'
import { command, query } from '../contract.ts'
import type { Credential, Event, Principal } from '../entry.ts'

/** A sign-in request and its status, as shown to the person who approves or denies it. */
export const DeviceRequest = Type.Object({
  status: Type.Enum(['pending', 'approved', 'denied']),
  label: Type.String({ description: 'Name of the device, as the device states it' }),
  client: Type.Optional(
    Type.String({
      description: 'Program, version and operating system, as the device states them',
    }),
  ),
  address: Type.String({ description: 'Network address of the device' }),
  project_handle: Type.Optional(
    Type.String({ description: 'Handle of the project that the device requests access to' }),
  ),
  expires_at: Timestamp,
})
export type DeviceRequest = Static<typeof DeviceRequest>

/** A personal token in the list of credentials that command-line clients show. */
export const CliCredential = Type.Object({
  id: Type.String(),
  status: Type.Enum(['active', 'expired']),
  label: Type.String(),
  last_used_at: Type.Optional(Timestamp),
})

const tag = 'people'
export const devices = {
  'device.answer': command('POST /auth/device/answers', {
    summary: 'Allow or deny the sign-in of a device that shows a code',
    tag,
    permission: 'authenticated',
    to: { kind: 'organization' },
    body: Closed({
      user_code: Type.String({
        minLength: 1,
        maxLength: 32,
        description: 'Code that the device shows; case and separators are ignored',
      }),
      decision: Type.Enum(['allow', 'deny']),
    }),
    reply: DeviceRequest,
    errors: ['not_found', 'conflict', 'permission_denied'],
  }),
  'cli_credential.list': query('GET /auth/cli-credentials', {
    summary: 'Device credentials of the caller, newest first',
    answeredBy: 'gateway',
    tag,
    permission: 'authenticated',
    ofCaller: true,
    query: Closed(paging),
    reply: pageOf(CliCredential),
    errors: ['not_found'],
  }),
  'cli_credential.revoke': command('DELETE /auth/cli-credentials/:token', {
    summary: 'Revoke a device credential of the caller',
    tag,
    permission: 'authenticated',
    as: 'me.revoke_token',
    ofCaller: true,
    to: { kind: 'project' },
    status: 204,
    errors: ['not_found'],
  }),
} as const

/**
 * The data of a sign-in request. The device provides all fields except `address`, which the gateway
 * adds.
 */
export interface DeviceClaim {
  readonly label: string
  readonly client?: string
  readonly project_handle?: string
  readonly address: string
}
/**
 * The person who approved a device, with the credential and the permissions used to approve it.
 * When the device polls, its token is created on the authority of that person.
 */
export interface DeviceApproval {
  readonly project: string
  readonly project_handle: string
  readonly principal: Principal
  readonly credential: Credential
  /**
   * The permissions of that credential. The token is not created if the person has a permission
   * that is not in this list.
   */
  readonly holds: readonly string[]
  /** The expiry of the credential. The token expires at the same time. */
  readonly expires_at?: string
}
/** The reply to a device that polls for its token. */
export type DevicePoll =
  | { readonly status: 'authorization_pending' | 'slow_down' | 'access_denied' | 'expired_token' }
  | {
      readonly status: 'approved'
      readonly approval: DeviceApproval
      readonly name: string
    }

/**
 * Internal commands of the organization about sign-in requests from devices. `id` is derived from
 * the device code, which is not stored.
 */
export type DeviceCommands = {
  /**
   * Opens a request. The reply contains the remaining lifetime of the request and the minimum
   * interval between two polls, both in seconds. Refused with `conflict` when too many requests are
   * stored, in total or from the same address. Refused with `already_exists` when a stored request
   * has this id or user code.
   */
  'device.request': {
    readonly input: DeviceClaim & { readonly id: string; readonly user_code: string }
    readonly reply: { readonly expires_in: number; readonly interval: number }
  }
  /** Returns the status of a request. Refused with `not_found` for an unknown request. */
  'device.poll': { readonly input: { readonly id: string }; readonly reply: DevicePoll }
  /**
   * Ends an approved request after the token of its device has been created. Refused with
   * `not_found` when the request is unknown, has already ended or was not approved.
   */
  'device.redeem': { readonly input: { readonly id: string }; readonly reply: undefined }
}
/**
 * Private events of the organization about sign-in requests from devices. `device.polled` is a soft
 * event, whose `at` is in Unix milliseconds. `device.ended` deletes the request.
 */
export type DeviceEvent =
  | (Event &
      DeviceClaim & {
        readonly type: 'device.requested'
        readonly id: string
        readonly user_code: string
        /** Expiry in Unix milliseconds. */
        readonly expires_at: number
      })
  | (Event & { readonly type: 'device.polled'; readonly id: string; readonly at: number })
  | (Event & {
      readonly type: 'device.approved'
      readonly id: string
      readonly approval: DeviceApproval
    })
  | (Event & { readonly type: 'device.denied'; readonly id: string })
  | (Event & { readonly type: 'device.ended'; readonly id: string })
