/** The page of channels: the list, and beside it the channel that the URL selects. */
import { useState } from 'preact/hooks'
import { useList, useQuery } from '../../api/query.ts'
import { Button } from '../../design/button.tsx'
import { Empty, Show } from '../../design/states.tsx'
import { go } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { useCommands } from '../../shell/shortcuts.ts'
import { ChannelView } from './channel.tsx'
import { ChannelList, nameOfChannel, useDirectName } from './channel-list.tsx'
import { Create } from './create.tsx'
import { channelsText as text } from './text.ts'

export default function ChannelsPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const id = params['id']
  const [creating, setCreating] = useState<'channel' | 'dm'>()
  const list = useList('channel.list', { project, limit: 200 }, { kinds: ['channel'] })
  const { state, reload } = useQuery(
    'channel.get',
    id === undefined ? undefined : { project, id },
    { kinds: ['channel'], id },
  )
  const channel = state.value.data
  const direct = useDirectName(project, channel?.kind === 'dm' ? channel.id : undefined)
  const channels = list.state.value.items
  const step = (by: 1 | -1): void => {
    const at = channels.findIndex((one) => one.id === id)
    const next = channels[at < 0 ? 0 : (at + by + channels.length) % channels.length]
    if (next) go(`/p/${encodeURIComponent(project)}/channels/${next.id}`)
  }
  const mayWrite = may('channel.write')
  useCommands(
    [
      { id: 'channel next', label: text.next, keys: ']', run: () => step(1) },
      { id: 'channel previous', label: text.previous, keys: '[', run: () => step(-1) },
      ...(mayWrite
        ? [
            {
              id: 'channel new',
              label: text.create,
              icon: 'plus' as const,
              run: () => setCreating('channel'),
            },
            {
              id: 'channel dm',
              label: text.write,
              icon: 'plus' as const,
              run: () => setCreating('dm'),
            },
          ]
        : []),
    ],
    [channels, id, mayWrite],
  )
  const name = channel && (direct ?? nameOfChannel(channel))
  return (
    <Page
      full
      title={name ?? text.title}
      heading={text.title}
      actions={
        mayWrite && (
          <Button kind="primary" icon="plus" onClick={() => setCreating('channel')}>
            {text.create}
          </Button>
        )
      }
    >
      <div class={id === undefined ? 'channels' : 'channels selected'}>
        <ChannelList
          project={project}
          list={list}
          selected={id}
          {...(mayWrite && { onCreate: (dm: boolean) => setCreating(dm ? 'dm' : 'channel') })}
        />
        {id === undefined ? (
          <div class="channel-none">
            <Empty icon="channels" title={text.chooseOne}>
              <p>{text.chooseHint}</p>
            </Empty>
          </div>
        ) : (
          <div class="channel-place">
            <Show of={state.value} retry={reload} lines={8}>
              {(shown) => (
                <ChannelView
                  key={shown.id}
                  project={project}
                  channel={shown}
                  onChanged={reload}
                  nameOf={(other) => {
                    const found = channels.find((one) => one.id === other)
                    return found && nameOfChannel(found)
                  }}
                />
              )}
            </Show>
          </div>
        )}
      </div>
      {creating && (
        <Create project={project} dm={creating === 'dm'} onClose={() => setCreating(undefined)} />
      )}
    </Page>
  )
}
