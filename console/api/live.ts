/**
 * The live data of this tab. One connection, opened on first use, serves all tabs of the browser.
 * It runs in a SharedWorker, whose URL is in the attribute `data-worker` of the document.
 */
import { signal } from '@preact/signals'
import type { Live, LiveConnection, LiveFault } from '../live/live.ts'
import { openLive } from '../live/open.ts'
import { ApiError } from './client.ts'

/** The state of this browser's connection. */
export const connection = signal<LiveConnection>({ state: 'idle' })

/** The part of Trusted Types that the console uses. Not all browsers have it. */
interface TrustedTypes {
  createPolicy(
    name: string,
    rules: { createScriptURL(address: string): string },
  ): { createScriptURL(address: string): string }
}

/**
 * Returns the URL of the worker, as a trusted script URL if the browser has Trusted Types;
 * undefined if the document contains none.
 */
function workerAddress(): string | undefined {
  const address = document.documentElement.dataset['worker']
  const { trustedTypes } = globalThis as { trustedTypes?: TrustedTypes }
  if (address === undefined || !trustedTypes) return address
  const policy = trustedTypes.createPolicy('console', { createScriptURL: (wanted) => wanted })
  return policy.createScriptURL(address)
}

let worker: string | undefined
let opened: Live | undefined
let owner = ''

/** Closes the live data when the person signs out or the session changes. */
export function forgetLive(): void {
  opened?.close()
  opened = undefined
  connection.value = { state: 'idle' }
}

/** Sets the id of the session, so that the connection of another session is never used. */
export function setLiveOwner(session: string): void {
  if (session === owner) return
  owner = session
  forgetLive()
}

/** Returns the live data of this tab. */
export function live(): Live {
  if (opened) return opened
  worker ??= workerAddress()
  opened = openLive({ identity: owner, ...(worker !== undefined && { worker }) })
  opened.onConnection((state) => {
    connection.value = state
  })
  return opened
}

/** Converts the refusal of a subscription to the error of a call. */
export const errorOfFault = ({ code, message, details }: LiveFault): ApiError =>
  new ApiError(409, code, message, details)
