/** The live data of this tab: one connection for the whole browser, opened on first use. */
import { signal } from '@preact/signals'
import type { Live, LiveConnection } from '../live/live.ts'

/** The state of the connection of this browser. */
export const connection = signal<LiveConnection>({ state: 'idle' })

/** Ends all live data, for signing out. */
export const forgetLive = (): void => {}

/** Returns the live data of this tab. */
export const live = (): Pick<Live, 'follow'> => ({ follow: () => () => {} })
