/** The page of an action: a form that calls it, its schemas, its calls and its definition. */
import { useState } from 'preact/hooks'
import { call } from '../../api/client.ts'
import { useQuery } from '../../api/query.ts'
import { CopyButton } from '../../design/copy.tsx'
import { showDone } from '../../design/notify.ts'
import { Confirm, Menu } from '../../design/overlay.tsx'
import { Badge, Show } from '../../design/states.tsx'
import { Tabs } from '../../design/tabs.tsx'
import { designText } from '../../design/text.ts'
import { Editor } from '../../editor/editor.tsx'
import { go } from '../../router/router.ts'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { objectText } from '../build/object.ts'
import { buildText } from '../build/text.ts'
import { Calls } from './calls.tsx'
import { Secret, Settings } from './settings.tsx'
import { actionsText as text } from './text.ts'
import { TryIt } from './try.tsx'
import { type Entry, kindWords, Marks, scopeWords } from './words.tsx'

function Schemas({ entry }: { readonly entry: Entry }) {
  const one = (label: string, schema: object | undefined) => (
    <section class="stack close">
      <h2>{label}</h2>
      {schema && Object.keys(schema).length > 0 ? (
        <Editor label={label} language="json" readOnly value={objectText(schema)} />
      ) : (
        <p class="soft">{text.noSchema}</p>
      )}
    </section>
  )
  return (
    <div class="pair">
      {one(text.inputSchema, entry.input_schema)}
      {one(text.outputSchema, entry.output_schema)}
    </div>
  )
}

function Facts({ entry }: { readonly entry: Entry }) {
  return (
    <div class="stack close">
      <div class="row small soft">
        <Marks entry={entry} />
        <Badge>{kindWords[entry.endpoint_kind]}</Badge>
        <span>{scopeWords[entry.definition_scope]}</span>
        <span>{text.risk(entry.risk)}</span>
        <CopyButton value={entry.name} />
      </div>
      {entry.title && <p class="user-text">{entry.title}</p>}
      {entry.description && <p class="soft user-text">{entry.description}</p>}
      {entry.endpoint_url && <code class="user-text">{entry.endpoint_url}</code>}
    </div>
  )
}

export default function ActionPage({ params }: PageProps) {
  const project = params['project'] ?? ''
  const name = params['name'] ?? ''
  const base = `/p/${encodeURIComponent(project)}/actions`
  const { state, reload } = useQuery(
    'catalog.action',
    { project, action_name: name },
    { kinds: ['action', 'worker', 'workflow'] },
  )
  const entry = state.value.data
  const isOwn = entry?.definition_scope === 'project' && !name.startsWith('workflow.')
  const definition = useQuery('action.get', isOwn ? { project, action_name: name } : undefined, {
    kinds: ['action'],
  })
  const action = definition.state.value.data
  const [isRemoving, setRemoving] = useState(false)
  return (
    <Page
      title={name}
      crumbs={[{ label: text.title, href: base }]}
      actions={
        action &&
        may('project.edit') && (
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
        )
      }
    >
      <Show of={state.value} retry={reload} lines={8}>
        {(known) => (
          <>
            <Facts entry={known} />
            <Tabs
              label={text.tabs}
              tabs={[
                {
                  id: 'try',
                  label: text.tryIt,
                  content: () => <TryIt project={project} entry={known} />,
                },
                {
                  id: 'schemas',
                  label: text.schemas,
                  content: () => <Schemas entry={known} />,
                },
                {
                  id: 'calls',
                  label: text.calls,
                  content: () => <Calls project={project} name={name} />,
                },
                ...(action
                  ? [
                      {
                        id: 'settings',
                        label: text.settings,
                        content: () => (
                          <div class="stack">
                            <Settings
                              key={action.id}
                              project={project}
                              action={action}
                              onSaved={definition.reload}
                            />
                            {action.endpoint_kind === 'http' && may('project.admin') && (
                              <Secret project={project} name={name} />
                            )}
                          </div>
                        ),
                      },
                    ]
                  : []),
              ]}
            />
          </>
        )}
      </Show>
      {isRemoving && (
        <Confirm
          title={text.removeTitle(name)}
          action={buildText.delete}
          danger
          onClose={() => setRemoving(false)}
          onConfirm={async () => {
            await call('action.delete', { project, action_name: name })
            showDone(buildText.deleted)
            go(base, { replace: true })
          }}
        >
          <p>{text.removeHint}</p>
          <p>{text.removeLoops}</p>
        </Confirm>
      )}
    </Page>
  )
}
