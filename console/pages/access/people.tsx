/** The page of the people, services, roles and API keys of a project. */
import { CopyCall } from '../../design/copy.tsx'
import { Tabs } from '../../design/tabs.tsx'
import { Page, type PageProps } from '../../shell/page.tsx'
import { may } from '../../shell/session.ts'
import { Keys } from './keys/keys.tsx'
import { Principals } from './principals.tsx'
import { Roles } from './roles.tsx'
import { accessText as text } from './text.ts'

export default function PeoplePage({ params }: PageProps) {
  const project = params['project'] ?? ''
  return (
    <Page title={text.title} actions={<CopyCall name="user.list" input={{ project }} />}>
      <Tabs
        label={text.title}
        tabs={[
          {
            id: 'people',
            label: text.people,
            content: () => <Principals key="people" project={project} person />,
          },
          {
            id: 'services',
            label: text.services,
            content: () => <Principals key="services" project={project} person={false} />,
          },
          { id: 'roles', label: text.roles, content: () => <Roles project={project} /> },
          ...(may('access.manage')
            ? [{ id: 'keys', label: text.keys, content: () => <Keys project={project} /> }]
            : []),
        ]}
      />
    </Page>
  )
}
