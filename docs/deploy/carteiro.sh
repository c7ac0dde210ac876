#!/bin/sh
# /usr/local/bin/carteiro: runs a command with the user, the settings and the folder of the service.
exec systemd-run --quiet --pty --pipe --wait --collect --service-type=exec \
    --uid=carteiro --gid=carteiro --working-directory=/var/lib/carteiro \
    --property=UMask=0077 --property=EnvironmentFile=-/etc/carteiro/carteiro.env \
    --setenv=CARTEIRO_DATABASE__URL=sqlite:////var/lib/carteiro/carteiro.db \
    --setenv=CARTEIRO_SECRETS__KEY_FILE=/var/lib/carteiro/carteiro.key \
    /opt/carteiro/bin/carteiro "$@"
