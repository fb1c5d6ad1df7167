"""Passages that made answers cite: a home's notes, as people write them."""

TEXTS = (
    """The nightly backup job to the storage box starts at 02:00 and is done before 03:30 unless the photos grew. It
keeps seven daily snapshots and four weekly snapshots of every machine. Archives older than 180 days are
pruned on Sundays. A failed run is repeated once after 45 minutes, and a mail goes to the family address.""",
    """Once a quarter one directory is restored to a spare disk and compared with its source. The last restore test
took eleven minutes for 38 GB. Restoring the whole photo library would need about 14 hours over the garden
cable. The passphrase lies in the sealed envelope in the desk drawer.""",
    """Syncthing needs 22000/TCP and 22000/UDP forwarded to the machine that runs it. The VPN listens on 51820/UDP
and nothing else is reachable from outside. Guests get a network of their own that ends at midnight. The
resolver answers local names, and everything else is asked of two servers abroad.""",
    """The boiler is serviced every autumn by the company whose sticker is on its door. Its pressure should stand
between 1.2 and 1.8 bar when the system is cold. Below 0.8 bar the burner locks itself and shows code F22.
Fill water slowly through the blue tap until the needle stands at 1.5 bar.""",
    """Cameras record movement clips for twelve days and continuous video for three days. Recording of the pavement
is not allowed, so the privacy mask of the gate camera must stay switched on. After a power cut the clock of
the gate camera is wrong until somebody presses time synchronisation on its page.""",
    """The heat pump draws 2400 W at most and switches off below -15 degrees. Defrosting takes ten minutes and looks
like smoke, which is harmless. In summer the hot water is made between noon and four, when the panels on the
roof deliver most. The installer asked for a flow of at least 1,050 litres an hour.""",
    """## Tomatoes

- Sow indoors in the first week of March, two seeds to a pot.
- Plant out after the ice saints, 60 cm apart, and bury the stem to the first leaves.
- Water the soil and never the foliage, best in the morning.
- Pinch out side shoots every 5 days, and stop the plant after six trusses.""",
    """The car has to be inspected in June of odd years. Winter tyres are stored at the garage on the main road under
customer number 4711. Tightening torque of the wheel nuts is 120 Nm, to be checked after 50 kilometres. The
spare key hangs in the cellar behind the fuse box.""",
    """The mesh sensors report temperature every 10 minutes and humidity every half hour. A sensor whose battery
falls under 2.6 V stops reporting without a warning. Replacing the cell resets the pairing, so hold the button
for five seconds until the red light blinks twice.""",
    """Prometheus scrapes all targets every 15 seconds and keeps samples for 90 days. Alerts wait for three failed
scrapes before anyone is woken. The dashboard of the freezer is shown on the kitchen tablet, which sleeps from
ten at night. Disk usage above 85 % is an alert for the person on duty.""",
)
