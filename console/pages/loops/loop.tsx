/** The page of a loop: its triggers, budget, definition, runs and settings. */
import { useState } from 'preact/hooks'
import type { Authored, Loop } from '../../../protocol/loops/schema.ts'
import { call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { saverOf } from '../../api/save.ts'
import { Button } from '../../design/button.tsx'
import { CopyButton } from '../../design/copy.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Menu } from '../../design/overlay.tsx'
import { Badge, Notice, Show } from '../../design/states.tsx'
import { Tabs } from '../../design/tabs.tsx'
import { designText } from '../../design/text.ts'
import { Time } from '../../design/time.tsx'
import { currentUrl, go, setQuery } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { useCommands } from '../../shell/shortcuts.ts'
import { checkLoopWith, loopSchema } from '../build/checks.ts'
import { DefinitionEditor } from '../build/definition.tsx'
import { fingerprint } from '../build/draft.ts'
import { RunTable } from '../build/run-table.tsx'
import { buildText } from '../build/text.ts'
import { Warnings } from '../build/warnings.tsx'
import { Budget } from './budget.tsx'
import { changesOf, definitionOf } from './definition.ts'
import { Settings } from './settings.tsx'
import { StartDialog } from './start.tsx'
import { loopsText as text } from './text.ts'
import { Triggers } from './triggers.tsx'
import { statusOf } from './words.ts'

function Facts({ loop }: { readonly loop: Loop }) {
  const [word, tone] = statusOf(loop.status)
  return (
    <div class="stack close">
      <div class="row small soft">
        <Badge tone={tone}>{word}</Badge>
        {text.lastRun}: {loop.last_run_at ? <Time at={loop.last_run_at} relative /> : text.never}
        <CopyButton value={loop.id} label={designText.copyId} />
      </div>
      {loop.description && <p class="user-text">{loop.description}</p>}
      {loop.status === 'paused' && <Notice tone="warn">{text.pausedNotice}</Notice>}
      {loop.status === 'draft' && <Notice>{text.draftNotice}</Notice>}
    </div>
  )
}

function Definition({ project, loop }: { readonly project: string; readonly loop: Loop }) {
  const saved = definitionOf(loop)
  return (
    <DefinitionEditor
      draftKey={`loop.${loop.id}`}
      saved={saved}
      version={fingerprint(saved)}
      newer={buildText.newerPlain}
      schema={loopSchema}
      check={checkLoopWith(loop.agent_id)}
      editable={may('project.edit')}
      onSave={async (value) => {
        const changes = changesOf(saved, value as Authored)
        const made = await saverOf(loop)('loop.update', { project, id: loop.id, ...changes })
        showDone(buildText.savedPlain)
        return fingerprint(definitionOf(made))
      }}
    />
  )
}

export default function LoopPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const id = params['id'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/loops`
  const { state, reload } = useQuery('loop.get', { project, id }, { kinds: ['loop'] })
  const [isRemoving, setRemoving] = useState(false)
  const loop = state.value.data
  const mayStart = may('runs.operate')
  const start = (): void => setQuery({ start: '1' }, { push: true })
  useCommands(
    mayStart ? [{ id: 'loop.start', label: text.start, icon: 'start', keys: 's', run: start }] : [],
    [mayStart],
  )
  const setStatus = async (status: 'active' | 'paused'): Promise<void> => {
    await call('loop.update', { project, id: loop?.id ?? id, status })
    showDone(status === 'active' ? text.resumedDone : text.pausedDone)
    reload()
  }
  const actions = loop && (
    <>
      {may('project.edit') && (
        <>
          <Menu
            label={designText.moreActions}
            items={[
              {
                label: text.remove,
                icon: 'trash',
                danger: true,
                onSelect: () => setRemoving(true),
              },
            ]}
          />
          <Button onClick={() => setStatus(loop.status === 'active' ? 'paused' : 'active')}>
            {loop.status === 'active' ? text.pause : text.resume}
          </Button>
        </>
      )}
      {mayStart && (
        <Button
          icon="start"
          kind="primary"
          shortcut="s"
          disabled={loop.status !== 'active'}
          onClick={start}
        >
          {text.start}
        </Button>
      )}
    </>
  )
  return (
    <Page
      wide
      title={loop?.name ?? id}
      crumbs={[{ label: text.title, href: base }]}
      actions={actions}
    >
      <Show of={state.value} retry={reload} lines={10}>
        {(known) => (
          <>
            <Facts loop={known} />
            <Warnings {...(known.warnings && { warnings: known.warnings })} />
            <Tabs
              label={text.tabs}
              tabs={[
                {
                  id: 'triggers',
                  label: text.triggers,
                  content: () => (
                    <div class="pair">
                      <Triggers project={project} loop={known} />
                      <Budget project={project} loop={known} />
                    </div>
                  ),
                },
                {
                  id: 'definition',
                  label: text.definition,
                  content: () => <Definition project={project} loop={known} />,
                },
                {
                  id: 'runs',
                  label: text.runs,
                  content: () => <RunTable project={project} filter={{ loop_id: known.id }} />,
                },
                {
                  id: 'settings',
                  label: text.settings,
                  content: () => (
                    <Settings key={known.id} project={project} loop={known} onSaved={reload} />
                  ),
                },
              ]}
            />
            {mayStart && currentUrl.value.query.get('start') === '1' && (
              <StartDialog project={project} loop={known} onClose={() => setQuery({ start: '' })} />
            )}
            {isRemoving && (
              <Confirm
                title={text.removeTitle(known.name)}
                action={buildText.delete}
                danger
                onClose={() => setRemoving(false)}
                onConfirm={async () => {
                  await call('loop.delete', { project, id: known.id })
                  showDone(buildText.deleted)
                  go(base, { replace: true })
                }}
              >
                <p>{text.removeRuns}</p>
                <p>{text.removeTriggers}</p>
              </Confirm>
            )}
          </>
        )}
      </Show>
    </Page>
  )
}
