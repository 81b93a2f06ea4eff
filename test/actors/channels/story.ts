/** Helpers for tests of channels: settings, members, callers and an opened channel. */

import { defineActor } from '../../../actors/actor.ts'
import { channelActor } from '../../../actors/channels/channel.ts'
import type { ChannelState } from '../../../actors/channels/state.ts'
import type { ChannelMember, ChannelSettings } from '../../../protocol/channels/schema.ts'
import { timestamp } from '../../../protocol/common.ts'
import { given, type Outcome, START } from '../../support/given.ts'

export const actor = defineActor(channelActor({ brand: 'Service' }))
export const CHANNEL = 'chan_1'
const now = timestamp(START)
export const settings = (more: Partial<ChannelSettings> = {}): ChannelSettings => ({
  id: CHANNEL,
  name: 'ops',
  display_name: 'ops',
  kind: 'channel',
  private: false,
  created_by: 'ann',
  created_at: now,
  updated_at: now,
  ...more,
})
export const member = (id: string, role: ChannelMember['role'] = 'member'): ChannelMember => ({
  channel_id: CHANNEL,
  member_id: id,
  kind: 'user',
  role,
  user_id: id,
  added_by: 'ann',
  joined_at: now,
  last_read_seq: 0,
})
export const by = (id: string) => ({ principal: { type: 'service_account' as const, id } })
export const opened = (
  more: Partial<ChannelSettings> = {},
  members: readonly ChannelMember[] = [member('ann', 'admin'), member('bob')],
): Outcome<ChannelState> =>
  given<ChannelState>(actor).when(
    'channel.open',
    { channel: settings(more), members, holder: 'chn_1' },
    by('ann'),
  )
